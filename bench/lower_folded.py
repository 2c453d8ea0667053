"""Lowering and certifying large plans in classes of ranks; makes a table of docs/evidence/certificate.md.

    python bench/lower_folded.py [--write]

CPU seconds and memory of the whole command `partita lower` (model built, plan read, lowered, certified, peak bytes
counted), median of five; then of writing down one rank of it beside that. Exit 1 if a limit is passed.
"""

import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PARTITA = ROOT / "build/bin/partita"
PAGE = ROOT / "docs" / "evidence" / "certificate.md"
# What, model, recipe; limits: CPU seconds, bytes.
CASES = [
    ("GPT-3 175B, tp8 x dp4 x pp8", "gpt3-175b", "dp --ranks 256 --tp 8 --pp 8 --microbatches 8", 5.0),
    ("GPT-3 175B, tp8 x dp16 x pp8", "gpt3-175b", "dp --ranks 1024 --tp 8 --pp 8 --microbatches 8", 2.0),
    ("the same with ZeRO-1 and clipping", "gpt3-175b",
     "zero1 --ranks 1024 --tp 8 --pp 8 --microbatches 8 --clip 1", 2.0),
    ("Llama-3.1 405B, tp8 x dp128 x pp16", "llama-3.1-405b",
     "dp --ranks 16384 --tp 8 --pp 16 --microbatches 16", 3.0),
    ("the same with ZeRO-3", "llama-3.1-405b", "zero3 --ranks 16384 --tp 8 --pp 16 --microbatches 16", 3.0),
]
MEMORY = 2 * 1024 ** 3


def run(words):
    """Text, CPU seconds and peak bytes of a command."""
    process = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE, text=True)
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{' '.join(map(str, words))} ended with {status}")
    return text, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def measure(model, plan, folder):
    times, peak, text = [], 0, ""
    for _ in range(5):
        text, seconds, held = run([PARTITA, "lower", model, plan, "--json"])
        times.append(seconds)
        peak = max(peak, held)
    answer = json.loads(text)
    alone = [run([PARTITA, "lower", model, plan, "--rank", answer["ranks"] - 1, "-o", folder / "rank.json", "--quiet"])[1]
             for _ in range(3)]
    seconds = statistics.median(times)
    return answer, seconds, peak, statistics.median(alone) - seconds


def main():
    lines = ["| plan | ops | ranks | classes | CPU seconds | limit | MB | one rank more |", "|---|---|---|---|---|---|---|---|"]
    passed = True
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for what, model, recipe, limit in CASES:
            plan = folder / "plan.json"
            recipe_name, *flags = recipe.split()
            run([PARTITA, "recipe", recipe_name, model, *flags, "-o", plan, "--quiet"])
            ops = json.loads(run([PARTITA, "profile", model, "--json"])[0])["ops"]
            answer, seconds, peak, alone = measure(model, plan, folder)
            passed &= seconds < limit and peak < MEMORY and alone < 1.0
            lines.append(f"| {what} | {ops} | {answer['ranks']} | {answer['classes']} | {seconds:.2f} | {limit:.0f} |"
                         f" {peak / 1e6:.0f} | {max(alone, 0):.2f} |")
            print(lines[-1], flush=True)
    if "--write" in sys.argv:
        begin, end = "<!-- folded -->\n", "<!-- end of folded -->\n"
        block = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.S)
        table = "\n".join(lines)
        PAGE.write_text(block.sub(lambda _: f"{begin}{table}\n{end}", PAGE.read_text()))
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
