"""Switches off the rules of the certificate one at a time; docs/certificate.md names the test of each that then fails.

    python bench/rules_off.py [RULE ...] [--all] [--write]

Builds the certificate with PARTITA_RULES_OFF into build/rules (no torch) and runs its unit tests with nothing off, where
all pass, and with each rule off. RULE: these alone, by name. --all: also property tests and campaigns for every rule,
which is slow. --write: puts the table into docs/certificate.md. "accepted": without the rule the certificate says nothing
against a broken Program; "other words": something else is said against it; "stops": it cannot go on. Exit 1 if the
named test of some rule passes without it.
"""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "certificate.md"
BUILD = ROOT / "build" / "rules"
UNIT = [f"test_unit_program_{name}_test" for name in ("rules", "certificate", "holes", "addend", "walk")]
PROPERTY = ["test_property_program_faults_test", "test_property_program_certificate_test"]
LINE = re.compile(r"^(\d+)\. \*\*([\w-]+)\*\*: .*? `([\w.]+)`$", re.M)


def build(targets):
    configure = ["cmake", "-S", ROOT, "-B", BUILD, "-G", "Ninja", "-DPARTITA_RULES_OFF=ON", "--log-level=WARNING"]
    subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", BUILD, "--target", *targets], check=True, stdout=subprocess.DEVNULL)


def failures(target, off):
    """{test: what it printed} of the tests of a binary that fail with this rule off."""
    command = [BUILD / "tests" / target, "--gtest_brief=0", "--gtest_color=no"]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", env={**os.environ, "PARTITA_RULE_OFF": off})
    failed, test, said = {}, None, []
    for line in done.stdout.splitlines():
        if line.startswith("[ RUN      ] "):
            test, said = line[13:].strip(), []
        elif test and line.startswith(("[       OK ]", "[  FAILED  ]")):
            if "FAILED" in line:
                failed[test] = "\n".join(said)
            test = None
        else:
            said.append(line)
    if test:  # the process ended in the middle of it
        failed[test] = f"signal {-done.returncode}"
    return failed


def how(said):
    if "C++ exception" in said or said.startswith("signal"):
        return "stops"
    empty = re.search(r"empty\(\)\s+Actual: true|is not empty|throws nothing|was not refused", said)
    return "accepted" if empty else "other words"


def main(words):
    unknown = {"--all", "--write"}
    chosen = [word for word in words if word not in unknown]
    rules = [row for row in LINE.findall(PAGE.read_text()) if not chosen or row[1] in chosen]
    targets = UNIT + (PROPERTY if "--all" in words else [])
    build(targets)
    broken = [name for target in targets for name in failures(target, "")]
    if not rules or broken:
        sys.exit(f"with nothing off these fail: {broken}" if broken else "the page names no such rule")
    lines, missing = ["| rule | failing tests | one of them | how |", "|---|---|---|---|"], []
    for number, name, test in rules:
        failed = {}
        for target in targets:
            failed.update(failures(target, name))
        if test not in failed:
            missing.append(name)
        lines.append(f"| {number} {name} | {len(failed)} | `{test}` | {how(failed[test]) if test in failed else 'PASSES'} |")
        print(lines[-1], flush=True)
    if "--write" in words:
        begin, end = "<!-- rules off -->\n", "<!-- end of rules off -->\n"
        block = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.S)
        PAGE.write_text(block.sub(lambda _: begin + "\n".join(lines) + "\n" + end, PAGE.read_text()))
    if missing:
        sys.exit(f"their tests pass without them: {', '.join(missing)}")
    print(f"{len(rules)} rules: without any of them its test fails")


if __name__ == "__main__":
    main(sys.argv[1:])
