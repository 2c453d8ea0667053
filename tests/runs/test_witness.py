"""The second witness says of programs, and of broken ones, what the certificate says."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PARTITA_LIBRARY_DIR", ROOT / "build/full/lib")).parent


def test_agrees_with_the_certificate(tmp_path):
    """Fifteen programs and a mutant of each class."""
    subprocess.run([BUILD / "bin/program_campaign", "1", "1", "--write", tmp_path], check=True, capture_output=True)
    command = [sys.executable, ROOT / "bench/program_witness.py", tmp_path]
    told = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT / "python")}, capture_output=True, text=True)
    assert told.returncode == 0, told.stdout + told.stderr
    rows = [line.split() for line in told.stdout.splitlines()[1:]]
    assert rows[-1] == ["unbroken", "15", "0", "0", "0"]
    assert len(rows) == 18 and all(int(row[1]) + int(row[2]) == 1 for row in rows[:-1]), told.stdout


def test_is_tiny_and_knows_nothing_of_us():
    lines = (ROOT / "python/partita/witness.py").read_text().splitlines()
    assert len(lines) < 500
    assert [line for line in lines if line.startswith(("import", "from"))] == [
        "import json", "import math", "import sys", "import torch"]
