"""tools/setup: installs what is missing, then nothing. Package tools are stand-ins that write down how they are called."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

TOOLS = {
    "dpkg-query": 'for last; do :; done; grep -qx "$last" "$FAKE/installed" && printf installed',
    "apt-get": 'echo "apt-get $*" >> "$FAKE/calls"; [ "$1" = update ] || for p; do echo "$p" >> "$FAKE/installed"; done',
    "id": "echo 0",
    "python3.11": '[ "$1" = -c ] && { [ -e "$FAKE/able" ]; exit; }\n'
                  'echo "python3.11 $*" >> "$FAKE/calls"; mkdir -p .venv/bin; cp "$FAKE/bin/python" .venv/bin/python',
    "python": 'echo "python $*" >> "$FAKE/calls"; [ ! -e "$FAKE/offline" ]',
}


@pytest.fixture
def machine(tmp_path):
    fake, tree = tmp_path / "fake", tmp_path / "tree"
    (fake / "bin").mkdir(parents=True)
    (tree / "tools").mkdir(parents=True)
    for name, body in TOOLS.items():
        (fake / "bin" / name).write_text(f"#!/bin/sh\n{body}\n")
        (fake / "bin" / name).chmod(0o755)
    (fake / "installed").write_text("ninja-build\nlibfmt-dev\n")
    (fake / "able").touch()
    shutil.copy(ROOT / "tools/setup", tree / "tools")
    shutil.copy(ROOT / "requirements.txt", tree)

    def setup():
        (fake / "calls").write_text("")
        env = {**os.environ, "PATH": f"{fake / 'bin'}:{os.environ['PATH']}", "FAKE": str(fake)}
        code = subprocess.run([tree / "tools/setup"], env=env, capture_output=True, timeout=60).returncode
        return code, (fake / "calls").read_text()

    return fake, tree, setup


def test_installs_what_is_missing_then_nothing(machine):
    fake, tree, setup = machine
    code, calls = setup()
    assert code == 0
    assert "nlohmann-json3-dev" in calls and "ccache" in calls
    assert "ninja-build" not in calls and "libfmt-dev" not in calls and "python3-dev" not in calls
    assert "python3.11 -m venv .venv" in calls and "-r requirements.txt" in calls
    assert setup() == (0, "")


def test_python_without_venv_or_headers_gets_them(machine):
    fake, tree, setup = machine
    (fake / "able").unlink()
    assert "python3.11-venv python3-dev" in setup()[1]


def test_changed_requirements_are_installed_again(machine):
    fake, tree, setup = machine
    setup()
    (tree / "requirements.txt").write_text("torch==2.13.0\n")
    code, calls = setup()
    assert code == 0 and "-r requirements.txt" in calls and "venv" not in calls and "apt-get" not in calls


def test_a_failed_install_is_tried_again(machine):
    fake, tree, setup = machine
    (fake / "offline").touch()
    assert setup()[0] != 0
    (fake / "offline").unlink()
    code, calls = setup()
    assert code == 0 and "-r requirements.txt" in calls
