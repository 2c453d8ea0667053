"""Switches off the rules of the certificate one at a time; docs/certificate.md names the test of each that then fails.

    python bench/rules_off.py [--sentences] [RULE ...]

Builds the certificate with PARTITA_RULES_OFF into build/rules (no torch). Runs its unit tests, property tests and
campaigns with nothing off, where all pass, and with each RULE off (by name; all where none is given). Prints how many
fail, the test that the page names, and how that one fails: "accepted", nothing is said against a broken Program; "other
words", another rule speaks; "stops", the certificate cannot go on. About four minutes of one core. --sentences: the same
for each sentence by which rules refuse, up to the first test that fails. Exit 1 if the named test of some rule passes
without it, or all tests without some sentence.
"""

import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "certificate.md"
BUILD = ROOT / "build" / "rules"
UNIT = ("rules", "sentences", "net_rules", "certificate", "holes", "addend", "walk")
TESTS = [f"test_unit_program_{name}_test" for name in UNIT]
TESTS += [f"test_property_program_{name}_test" for name in ("faults", "certificate")]
CAMPAIGNS = {"fold_campaign": "200", "program_campaign": "5"}
LINE = re.compile(r"^(\d+)\. \*\*([\w-]+)\*\*: .* `([\w.]+)`$", re.M)
NOTHING_SAID = re.compile(r"empty\(\)\s+Actual: true|\.size\(\)\s+Which is: 0|throws nothing|was not refused")
SENTENCE = re.compile(r'(?:refuse|stop)\((?:Rule::k\w+|clash\.rule),\s*((?:"(?:[^"\\]|\\.)*"\s*)+)')
LIMIT = 300  # seconds of one command


def build():
    configure = ["cmake", "-S", ROOT, "-B", BUILD, "-G", "Ninja", "-DPARTITA_RULES_OFF=ON", "--log-level=WARNING"]
    subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
    targets = ["--target", *TESTS, *CAMPAIGNS]
    subprocess.run(["cmake", "--build", BUILD, "--parallel", "1", *targets], check=True, stdout=subprocess.DEVNULL)


def ran(command, off):
    environment = {**os.environ, "PARTITA_RULE_OFF": off}
    return subprocess.run(command, capture_output=True, text=True, errors="replace", env=environment, timeout=LIMIT)


def how(said):
    if "C++ exception" in said:
        return "stops"
    return "accepted" if NOTHING_SAID.search(said) else "other words"


def failing_tests(target, off):
    """{test: how} of the tests of a binary that fail with this rule off."""
    failed, test, said = {}, None, []
    for line in ran([BUILD / "tests" / target, "--gtest_color=no"], off).stdout.splitlines():
        if line.startswith("[ RUN      ] "):
            test, said = line[13:].strip(), []
        elif test and line.startswith(("[       OK ]", "[  FAILED  ]")):
            if "FAILED" in line:
                failed[test] = how("\n".join(said))
            test = None
        else:
            said.append(line)
    return {**failed, test: "stops"} if test else failed  # the process ended in the middle of one


def rejected(text):
    """How many mutants program_campaign saw refused: the second number of each class."""
    return sum(int(row.group(1)) for row in re.finditer(r"^\S.{35} +\d+ +(\d+) +\d+ +\d+ +\d+$", text, re.M))


def failing_campaigns(off, expected):
    """The same of the campaigns. Nothing runs there, so that one that accepts more than `expected` says has failed."""
    failed = {}
    for name, count in CAMPAIGNS.items():
        done = ran([BUILD / "bin" / name, count], off)
        if done.returncode < 0:
            failed[name] = "stops"
        elif done.returncode or (name == "program_campaign" and rejected(done.stdout) < expected):
            failed[name] = "accepted"
    return failed


def failing(off, expected):
    failed = {}
    for target in TESTS:
        failed.update(failing_tests(target, off))
    return {**failed, **failing_campaigns(off, expected)}


def sentences():
    """Every sentence of the certificate once, as its source has it."""
    texts = "".join(path.read_text() for path in sorted((ROOT / "src" / "certify").rglob("*.cc")))
    return list(dict.fromkeys("".join(re.findall(r'"((?:[^"\\]|\\.)*)"', found)) for found in SENTENCE.findall(texts)))


def try_sentences(expected):
    silent = []
    for sentence in sentences():
        some = (failing_tests(target, sentence) for target in TESTS)
        failed = next((tests for tests in some if tests), None) or failing_campaigns(sentence, expected)
        first = next(iter(failed.items()), ("nothing", "PASSES"))
        print(f"| {sentence} | {first[0]} | {first[1]} |", flush=True)
        silent += [sentence] if not failed else []
    if silent:
        sys.exit(f"all tests pass without: {'; '.join(silent)}")


def try_rules(rules, expected):
    print("| rule | fail | the test of the page | how |\n|---|---|---|---|")
    without = []
    for number, name, test in rules:
        failed = failing(name, expected)
        print(f"| {number} {name} | {len(failed)} | {test} | {failed.get(test, 'PASSES')} |", flush=True)
        without += [name] if test not in failed else []
    if without:
        sys.exit(f"their tests pass without them: {', '.join(without)}")
    print(f"{len(rules)} rules: without any one of them its test fails")


def main(words):
    chosen = [word for word in words if word != "--sentences"]
    rules = [row for row in LINE.findall(PAGE.read_text()) if not chosen or row[1] in chosen]
    if not rules:
        sys.exit(f"docs/certificate.md has no rule {' '.join(chosen)}")
    build()
    expected = rejected(ran([BUILD / "bin" / "program_campaign", CAMPAIGNS["program_campaign"]], "").stdout)
    if broken := failing("", expected):
        sys.exit(f"with nothing off these fail: {', '.join(broken)}")
    if "--sentences" in words:
        try_sentences(expected)
    else:
        try_rules(rules, expected)


if __name__ == "__main__":
    main(sys.argv[1:])
