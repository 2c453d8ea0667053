"""Broken programs against the two witnesses, the certificate and partita.witness; makes the tables of docs/evidence/certificate.md.

    python bench/certificate.py [--write] [COUNT 50] [SEED 1]

COUNT mutants of each of the seventeen classes. About ten minutes of one core for 50; needs the build (make build). Exit 1
if the certificate missed a mutant that computes something else, or the witness refuses what the certificate accepts.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "evidence" / "certificate.md"


def told(words):
    """Prints what a command prints; its text and exit code."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) as process:
        lines = []
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    return "".join(lines), process.returncode


def write(part, text):
    begin, end = f"<!-- {part} -->\n", f"<!-- end of {part} -->\n"
    block = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.S)
    PAGE.write_text(block.sub(lambda _: f"{begin}```\n{text}```\n{end}", PAGE.read_text()))


def main(count="50", seed="1"):
    with tempfile.TemporaryDirectory() as folder:
        mutants, missed = told([ROOT / "build/full/bin/program_campaign", count, seed, "--write", folder])
        both, alone = told([sys.executable, ROOT / "bench/program_witness.py", folder])
    if "--write" in sys.argv:
        write("mutants", f"$ program_campaign {count} {seed}\n{mutants}")
        write("witnesses", both)
    sys.exit(1 if missed or alone else 0)


if __name__ == "__main__":
    main(*[word for word in sys.argv[1:] if word != "--write"])
