"""The walks of CONTRIBUTING.md: at most twelve steps each, every one a file and a function that it defines."""

import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]
STEP = re.compile(r"^(\d+)\. \[`([^`]+)`\]\(([^)]+)\) `(\w+)` ", re.MULTILINE)
MOST = 12


def walks(text):
    """Lists of (file, linked file, function)."""
    found = []
    for number, *step in STEP.findall(text):
        if number == "1":
            found.append([])
        found[-1].append(step)
    return found


def defines(text, name, python):
    if python:
        return re.search(rf"^ *def {name}\(", text, re.MULTILINE) is not None
    # A definition: what it returns, its name, parameters, and no semicolon before the body.
    return re.search(rf"^[\w:<>,&* \[\]]*[ :*&]{name}\([^;]*?\)[^;{{}}]*\{{", text, re.MULTILINE) is not None


class Walks(unittest.TestCase):
    def test_every_step_is_a_function_of_its_file(self):
        found = walks((ROOT / "CONTRIBUTING.md").read_text())
        self.assertEqual(len(found), 2)
        for steps in found:
            self.assertLessEqual(len(steps), MOST)
            for named, linked, function in steps:
                with self.subTest(file=named, function=function):
                    self.assertEqual(named, linked)
                    self.assertTrue(defines((ROOT / linked).read_text(), function, linked.endswith(".py")))

    def test_a_call_is_no_definition(self):
        self.assertFalse(defines("int a() { return find(3); }\nvoid find(int);\n", "find", False))
        self.assertTrue(defines("Found Search::find(int a,\n                  int b) const {\n", "find", False))
        self.assertFalse(defines("x = find()\n", "find", True))


if __name__ == "__main__":
    unittest.main()
