"""CPU seconds of `partita lower` (certificate included) and `partita verify` of two builds in alternation: median ratio and spread.

    python bench/certify_seconds.py OLD NEW [--pairs 15]

OLD and NEW are two commands `partita`; each writes its own plans, so that formats may differ. Exit 1 where a median is
above LIMIT.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from lower_folded import CASES

LIMIT = 1.25
LOWERED = [(name, model, recipe) for name, model, recipe, _ in CASES]
VERIFIED = [
    ("GPT-2, dp4", "gpt2-tiny", "dp --ranks 4"),
    ("GPT-2, ZeRO-3 and clipping", "gpt2-tiny", "zero3 --ranks 4 --clip 1"),
    ("GPT-2, tp2 x dp2", "gpt2-tiny", "dp --ranks 4 --tp 2"),
    ("GPT-2, pipeline", "gpt2-tiny", "pipeline --ranks 2 --microbatches 4"),
]


def cpu_seconds(command):
    before = os.times()
    subprocess.run(command, check=True, capture_output=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def median_ratio(label, old, new, pairs):
    seconds = [(cpu_seconds(old), cpu_seconds(new)) for _ in range(pairs)]
    ratios = sorted(after / before for before, after in seconds)
    median = statistics.median(ratios)
    print(f"{label:44} old {statistics.median(a for a, _ in seconds):.2f} s, new {statistics.median(b for _, b in seconds):.2f} s, "
          f"median ratio {median:.3f} ({ratios[0]:.2f} to {ratios[-1]:.2f})", flush=True)
    return median


def main():
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("old")
    flags.add_argument("new")
    flags.add_argument("--pairs", type=int, default=15)
    args = flags.parse_args()
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for verb, cases in (("lower", LOWERED), ("verify", VERIFIED)):
            for number, (name, model, recipe) in enumerate(cases):
                commands = []
                for build in (args.old, args.new):
                    plan = pathlib.Path(folder) / f"{verb}-{number}-{len(commands)}.json"
                    kind, *words = recipe.split()
                    subprocess.run([build, "recipe", kind, model, *words, "-o", plan], check=True, capture_output=True)
                    commands.append([build, verb, model, plan])
                worst = max(worst, median_ratio(f"{verb}: {name}", *commands, args.pairs))
    sys.exit(worst > LIMIT)


if __name__ == "__main__":
    main()
