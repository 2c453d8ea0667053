"""Odd modules x plans x (clip, loss scale, micro-batches), three steps of each beside plain PyTorch, as a table.

python bench/odd_modules.py [NAME ...]: all of them, or these. Ends with 1 where anything is not as the list expects.
"""

import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests/runs")]

import torch  # noqa: E402

from odd import ODD  # noqa: E402
from odd.judge import PLANS, SETTINGS, Trial, as_expected  # noqa: E402


def row(name) -> tuple:
    """(what each cell said, lines that tell why, how many were not as expected)."""
    trial, cells, why, odd = Trial(name), [], Counter(), 0
    for plan in PLANS:
        for setting in SETTINGS:
            verdict = trial.verdict(plan, setting)
            bad = not as_expected(verdict, name, plan, setting)
            odd += bad
            cells.append(verdict.word)
            if verdict.why:
                why[f"{'UNEXPECTED ' if bad else ''}{verdict.word}: {' '.join(verdict.why.split())[:300]}"] += 1
    return cells, why, odd


def main(names):
    torch.set_num_threads(1)
    total, unexpected = Counter(), 0
    print(f"{'module':<28} {' '.join(f'{plan:<{len(SETTINGS)}}' for plan in PLANS)}   (each: {', '.join(SETTINGS)})")
    for name in names or ODD:
        cells, why, odd = row(name)
        total.update(cells)
        unexpected += odd
        marks = "".join({"equal": "=", "refused": "r", "WRONG": "X", "BROKEN": "!"}[cell] for cell in cells)
        print(f"{name:<28} {' '.join(marks[at:at + len(SETTINGS)] for at in range(0, len(marks), len(SETTINGS)))}", flush=True)
        for line, count in why.items():
            print(f"    {count} x {line}")
    print(", ".join(f"{word} {count}" for word, count in sorted(total.items())) + f"; not as expected {unexpected}")
    return unexpected > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
