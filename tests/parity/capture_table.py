"""Captures the zoo, runs every step in the compiled executor and compares it with PyTorch, value by value.

    python tests/parity/capture_table.py [NAME ...] [--write docs/evidence/capture.md]

Exit code 1 when a model fails or differs. --write replaces the table in the page; without it the rows go to stdout.
"""

import argparse
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "python")]

import torch
import transformers

from zoo import KINDS, ZOO
from zoo.compare import compare

BEGIN = "<!-- written by tests/parity/capture_table.py -->\n"
HEAD = "| model | ops | opaque ops | loss | gradients | buffers |\n|---|---|---|---|---|---|\n"


def row(name, result):
    wrong = {key: value for key, value in result.wrong.items()}
    loss = _cell([wrong.pop("loss")] if "loss" in wrong else [], 1, 1)
    gradients = _cell(list(wrong.values()), result.gradients, result.gradients - len(wrong))
    without = [(target, "") for target in result.opaque] + [(target, " inferred") for target in result.inferred]
    opaque = ", ".join(f"`{target.removeprefix('aten.').removesuffix('.default')}`{how}" for target, how in without)
    return f"| {name} | {result.ops} | {opaque} | {loss} | {gradients} | {result.buffers or ''} |"


def _cell(differences, count, equal):
    return f"{count} bitwise" if not differences else f"{equal} of {count} bitwise, the rest within {max(differences):.0e}"


def run(name):
    begin = time.perf_counter()
    try:
        result = compare(ZOO[name])
        problem = f"only one side has {', '.join(result.missing)}" if result.missing else ""
    except Exception as error:  # the table says which model fails, and goes on with the next
        result, problem = None, f"{type(error).__name__}: {str(error)[:200]}"
    print(f"{name}: {problem or ('differs' if result.wrong else 'bitwise')} ({time.perf_counter() - begin:.1f} s)",
          file=sys.stderr, flush=True)
    return result, problem


def table(names):
    text, results, failed = "", {}, []
    for kind, cases in KINDS.items():
        chosen = [case.name for case in cases if case.name in names]
        if not chosen:
            continue
        rows = []
        for name in chosen:
            result, problem = run(name)
            if problem:
                failed.append(f"{name}: {problem}")
            else:
                results[name] = result
                rows.append(row(name, result))
        text += f"\n### {kind.capitalize()}\n\n{HEAD}" + "\n".join(rows) + "\n"
    return _summary(results) + text, results, failed


def _summary(results):
    ways = {case.name for case in KINDS["ways of training"]}  # of models that are there already
    families = {ZOO[name].family for name in results if name not in ways}
    bitwise = sum(not result.wrong for result in results.values())
    gradients = sum(result.gradients for result in results.values())
    buffers = sum(result.buffers for result in results.values())
    return (f"{len(results)} models of {len(families)} families; loss, every gradient ({gradients} in all) and every buffer "
            f"({buffers}) bitwise equal to PyTorch {torch.__version__.split('+')[0]} with transformers "
            f"{transformers.__version__} in {bitwise} of them, one thread each.\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--write", type=Path, metavar="PAGE")
    options = parser.parse_args()
    unknown = set(options.names) - ZOO.keys()
    if unknown:
        parser.error(f"no model is called {', '.join(sorted(unknown))}; known: {', '.join(ZOO)}")
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    text, results, failed = table(options.names or list(ZOO))
    if options.write and not failed:
        page = options.write.read_text()
        options.write.write_text(page[:page.index(BEGIN) + len(BEGIN)] + "\n" + text)
    else:
        print(text)
    for line in failed:
        print(f"failed: {line}", file=sys.stderr)
    return 1 if failed or any(result.wrong for result in results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
