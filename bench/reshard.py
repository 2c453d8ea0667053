"""Prints the campaigns of the reshard engine: every pair of layouts beside a search over counts first, the fastest way
on nodes, random problems, values on thread ranks, the time of one query, the rows of the case file, wrong inputs.

    python bench/reshard.py [--full] [--write]

Without --full a share that takes about half a minute. --write puts what was printed into docs/evidence/reshard.md.
Needs the build (make build).
"""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "evidence" / "reshard.md"
BEGIN, END = "<!-- figures: python bench/reshard.py --full --write -->\n", "<!-- end of figures -->\n"
SHORT = [["speed"], ["pairs", "8"], ["topology", "8"], ["random", "10000"], ["values", "500"], ["lowering"]]
FULL = [["speed"], ["pairs", "16"], ["topology", "16"], ["random", "100000"], ["values", "2000"], ["lowering"]]


def find_build():
    for name in ("full", "dev"):
        if (ROOT / "build" / name / "bin" / "reshard_campaign").exists():
            return ROOT / "build" / name
    sys.exit("bench/reshard.py: no build/full/bin/reshard_campaign; run make build first")


def run(title, words):
    """Prints a command's output as it comes; its lines and exit code."""
    print(f"$ {title}", flush=True)
    lines = [f"$ {title}\n"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    print(flush=True)
    return lines, process.returncode


def write(lines):
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(before + BEGIN + "```\n" + "".join(lines).rstrip() + "\n```\n" + END + after)


def main():
    full, build = "--full" in sys.argv, find_build()
    commands = [(f"reshard_campaign {' '.join(words)}", [build / "bin" / "reshard_campaign", *words])
                for words in (FULL if full else SHORT)]
    commands.append(("reshard_cases_test", [build / "tests" / "test_unit_reshard_cases_test", "--gtest_brief=1"]))
    wrong = ROOT / "tests" / "errors" / "reshard_wrong_inputs.py"
    commands.append(("reshard_wrong_inputs.py", [sys.executable, wrong, build / "bin" / "partita", "1000" if full else "200"]))
    text, failed = [], False
    for title, words in commands:
        lines, code = run(title, words)
        text += [*lines, "\n"]
        failed = failed or code != 0
    if "--write" in sys.argv:
        write(text)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
