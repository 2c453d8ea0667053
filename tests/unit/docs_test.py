"""Runs the commands that README.md and docs/ show, in the order a reader would type them, and follows their links.

usage: docs_test.py PARTITA [--torch]

Every line of a fenced block that starts with `partita` or `build/bin/partita` is run in one fresh folder per
page and must end with exit code 0, or with the code its comment names (`# exit 1`). Files a reader is expected
to bring (GIVEN) are laid out first. Lines that start with `make` must name a target of the Makefile. Verbs and
flags that compute tensors are run only with --torch. A link to a file of the project must lead to one.
"""
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "examples/README.md",
         *sorted(str(p.relative_to(ROOT)) for p in ROOT.glob("docs/**/*.md"))]
COMPUTE = {"train", "verify", "calibrate", "capture", "race", "--measure"}
LIMIT = 60  # seconds for one command
CONFIG = '{"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 96}'
OPTIONS = '{"budget": 100, "operators": [{"count": 4, "options": [{"name": "dp", "seconds": 1, "bytes": 40}, {"name": "zdp", "seconds": 2, "bytes": 10}]}]}'
GIVEN = {
    "options.json": OPTIONS,
    "x.model.json": (ROOT / "tests/data/gpt2-tiny.model.json").read_text(),
    "config.json": CONFIG,
}


def fenced_lines(text):
    """(line number, line) of every line inside a fenced block."""
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            inside = not inside
        elif inside:
            yield number, line


def commands(text):
    """(line number, words, expected exit code) of the commands of a page."""
    for number, line in fenced_lines(text):
        line = line.removeprefix("$ ")
        if not re.match(r"(build/bin/)?partita\s", line) and not line.startswith("make "):
            continue
        words = shlex.split(line, comments=True)
        expected = re.search(r"#.*\bexit (\d+)\b", line)
        yield number, words, int(expected.group(1)) if expected else 0


def make_targets():
    return set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M))


def check_links(page, wrong):
    folder = (ROOT / page).parent
    for number, line in enumerate((ROOT / page).read_text().splitlines(), 1):
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", line):
            if "://" not in target and not (folder / target).exists():
                wrong.append(f"{page}:{number}: {target} does not exist")


def run(partita, words, folder):
    strict = ["--strict"] if words[1] == "plan" else []  # a fault of ours must not end in a warning
    try:
        done = subprocess.run([partita, *words[1:], *strict], cwd=folder, capture_output=True, text=True, timeout=LIMIT)
        return done.returncode, done.stderr.strip().splitlines()
    except subprocess.TimeoutExpired:
        return None, [f"still running after {LIMIT} s"]


def check_page(page, partita, torch, wrong):
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, text in GIVEN.items():
            (Path(folder) / name).write_text(text)
        for number, words, expected in commands((ROOT / page).read_text()):
            if words[0] == "make":
                wrong += [f"{page}:{number}: the Makefile has no target {t}" for t in words[1:] if t not in make_targets()]
                continue
            if COMPUTE.intersection(words) and not torch:
                continue
            count += 1
            code, errors = run(partita, words, folder)
            if code != expected:
                wrong.append(f"{page}:{number}: {' '.join(words)}: exit {code}, expected {expected}: {' '.join(errors[-2:])}")
    return count


def main():
    partita, torch = str(Path(sys.argv[1]).resolve()), "--torch" in sys.argv[2:]
    wrong, total = [], 0
    for page in PAGES:
        check_links(page, wrong)
        total += check_page(page, partita, torch, wrong)
    for sentence in wrong:
        print(sentence)
    print(f"{total} commands of {len(PAGES)} pages run, {len(wrong)} wrong")
    return 1 if wrong or total == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
