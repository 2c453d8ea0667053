"""Answers tests/data/profile_cases.csv from graphs: every row that one device's step can answer, and why not the others.

    python tests/parity/profile_cases.py [--write docs/evidence/profile.md]

Exit code 1 when a row does not hold. --write replaces the table in the page; without it the rows go to stdout.
"""

import argparse
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "python")]

import torch

from published.cases import REASONS, Profiler, holds, rows

BEGIN, END = "<!-- written by tests/parity/profile_cases.py -->\n", "<!-- end of profile_cases -->"
HEAD = "| row | model | what | published | from the graph | off |\n|---|---|---|---|---|---|\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", type=Path, metavar="PAGE")
    options = parser.parse_args()
    torch.set_num_threads(1)
    profiler, lines, wrong = Profiler(HERE.parents[1] / "build/full/bin/partita"), [], 0
    for row in rows():
        if row["id"] in REASONS:
            continue
        value, off, right = holds(profiler, row)
        wrong += not right
        shown = f"{value:.6g}" if isinstance(value, float) else value
        lines.append(f"| {row['id']} | {row['model']} | {row['quantity']} ({row['unit']}) | {row['value']} | {shown} | "
                     f"{off}{'' if right else ' **does not hold**'} |")
        print(lines[-1], file=sys.stderr, flush=True)
    text = f"\n{len(lines)} of {len(rows())} rows answered, {len(lines) - wrong} hold.\n\n{HEAD}" + "\n".join(lines) + "\n\n"
    text += "Not answered:\n" + "".join(f"- row {row}: {reason}\n" for row, reason in REASONS.items()) + "\n"
    if options.write:
        page = options.write.read_text()
        before, after = page.split(BEGIN)[0], page.split(END)[1]
        options.write.write_text(before + BEGIN + text + END + after)
    else:
        print(text)
    sys.exit(wrong > 0)


main()
