"""Installs into a fresh folder, then builds and runs examples/consumer against it, outside of the tree.

usage: install_test.py BUILD_DIR
"""
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))}: exit {done.returncode}\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run("cmake", "--install", sys.argv[1], "--prefix", folder / "prefix")
        shutil.copytree(ROOT / "examples/consumer", folder / "source")
        run("cmake", "-S", folder / "source", "-B", folder / "build", "-G", "Ninja",
            f"-DCMAKE_PREFIX_PATH={folder}/prefix", *sys.argv[2:])
        run("cmake", "--build", folder / "build")
        said = run(folder / "build/consumer")
        print(said, end="")
        if not said.endswith("2 ranks\n"):
            sys.exit("the consumer should have said how many ranks it planned for")
        if list((folder / "prefix").rglob("torch")):
            sys.exit("torch headers were installed")
        version = run(folder / "prefix/bin/partita", "--version")
        if not version.startswith("partita "):
            sys.exit(f"the installed command says: {version}")


if __name__ == "__main__":
    main()
