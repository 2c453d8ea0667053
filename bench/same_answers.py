"""Is every run the same? Verifies plans of one model over and over, several at once, and counts different answers.

    python3 bench/same_answers.py COMMAND [--count 100] [--beside 4] [--model FILE]

Ranks are threads, so what one run in thousands does otherwise (a race, memory that nobody has written) shows as a second
answer for the same plan. Beside each other they outnumber the cores, and threads are interrupted at any moment. Exit 1:
some plan has several answers, or one that is wrong.
"""

import argparse
import collections
import concurrent.futures
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
RECIPES = ["zero1 --ranks 4 --tp 2 --microbatches 2 --overlap", "zero3 --ranks 4 --replicas 2", "pipeline --ranks 4 --microbatches 4",
           "cp --ranks 4 --dp 2 --zero 3 --recompute --merge lse", "sp --ranks 2"]
ERRORS = ("loss_error", "max_grad_error", "max_param_error")


def ask(command, *words):
    done = subprocess.run([command, *map(str, words), "--json"], capture_output=True, text=True)
    if not done.stdout:
        sys.exit(f"{' '.join(map(str, words))}\n{done.stderr}")
    return json.loads(done.stdout)


def answers(options, plan):
    def verify(_):
        found = ask(options.command, "verify", options.model, plan, "--dtype", "float64", "--ignored-labels")
        return found["equal"], *(found[key] for key in ERRORS), found["worst_parameter"]

    with concurrent.futures.ThreadPoolExecutor(options.beside) as pool:
        return collections.Counter(pool.map(verify, range(options.count)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("command")
    parser.add_argument("--count", type=int, default=100, help="of each plan")
    parser.add_argument("--beside", type=int, default=4)
    parser.add_argument("--model", default=ROOT / "tests" / "data" / "llama-tiny.model.json")
    options = parser.parse_args()
    bad = 0
    with tempfile.TemporaryDirectory() as folder:
        for recipe in RECIPES:
            name, *words = recipe.split()
            plan = pathlib.Path(folder) / "plan.json"
            ask(options.command, "recipe", name, options.model, *words, "-o", plan)
            found = answers(options, plan)
            bad += len(found) > 1 or not all(equal for equal, *_ in found)
            for (equal, *errors, worst), times in found.most_common():
                print(recipe, times, "equal" if equal else "WRONG", *(f"{error:.1e}" for error in errors), worst, sep="  ")
    print(f"{len(RECIPES) - bad} passed, {bad} failed")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
