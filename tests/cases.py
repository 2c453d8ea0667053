"""Runs the cases of a folder: text in, one command, text out.

A case is a file NAME.txt:

    # One sentence: why this case exists.
    @ bad.json                                   (an input file: the lines up to the next marker)
    {"format": "partita.cluster"}
    @ cut.model.json = data/gpt2-tiny.model.json first 2000          (the first bytes of a file of tests/data)
    @ odd.model.json = data/gpt2-tiny.model.json change "a" "b"      (with the first "a" replaced)
    $ partita devices --cluster bad.json
    what it prints on stdout, then on stderr
    [exit 2]

The command runs in an empty folder that holds the input files, and tests/data as `data`.
    python3 tests/cases.py COMMAND FOLDER            compare
    python3 tests/cases.py COMMAND FOLDER --update   rewrite what differs
"""

import difflib
import pathlib
import shlex
import subprocess
import sys
import tempfile

DATA = pathlib.Path(__file__).resolve().parent / "data"
LIMIT_SECONDS = 60


class Broken(Exception):
    """A case file that does not follow the form above."""


def derived(words):
    """The text that `data/FILE first N` or `data/FILE change OLD NEW` stands for."""
    source = (DATA / words[0].removeprefix("data/")).read_text()
    if words[1] == "first" and len(words) == 3:
        return source[: int(words[2])]
    if words[1] == "change" and len(words) == 4 and words[2] in source:
        return source.replace(words[2], words[3], 1)
    raise Broken(f"cannot make a file from {' '.join(words)}")


def parse(text):
    """The head of a case (all before its output), its input files and its command."""
    head, files, command, name = [], {}, None, None
    if not text.startswith("# "):
        raise Broken("the first line needs to say why the case exists: # ...")
    for line in text.splitlines(keepends=True):
        if command:
            break
        head.append(line)
        if line.startswith("$ "):
            command = shlex.split(line[2:])
        elif line.startswith("@ "):
            name, _, source = line[2:].strip().partition(" = ")
            files[name] = derived(shlex.split(source)) if source else ""
        elif name:
            files[name] += line
    if not command or command[0] != "partita":
        raise Broken("a case needs a line `$ partita ...`")
    return "".join(head), files, command[1:]


def run(partita, files, arguments):
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "data").symlink_to(DATA)
        for name, text in files.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        strict = ["--strict"] if arguments[:1] == ["plan"] else []  # a fault of ours must not end in a warning
        done = subprocess.run([partita, *arguments, *strict], cwd=folder, capture_output=True, text=True, timeout=LIMIT_SECONDS)
    output = done.stdout + done.stderr
    if output and not output.endswith("\n"):
        output += "\n"
    return f"{output}[exit {done.returncode}]\n"


def judge(partita, path, update):
    """True if the case holds, or was rewritten so that it does."""
    text = path.read_text()
    try:
        head, files, arguments = parse(text)
    except Broken as broken:
        print(f"{path}: {broken}")
        return False
    found = head + run(partita, files, arguments)
    if found == text:
        return True
    if update:
        path.write_text(found)
        print(f"rewrote {path}")
        return True
    print(f"{path} differs; `python3 tests/cases.py build/bin/partita {path.parent} --update` rewrites it")
    sys.stdout.writelines(difflib.unified_diff(text.splitlines(True), found.splitlines(True), "expected", "found"))
    return False


def main():
    partita, folder = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2])
    cases = sorted(folder.glob("*.txt"))
    failed = [case.name for case in cases if not judge(partita, case, "--update" in sys.argv)]
    print(f"{len(cases) - len(failed)} of {len(cases)} cases hold")
    sys.exit(1 if failed or not cases else 0)


if __name__ == "__main__":
    main()
