"""Only src/base/file.cc opens files to write: what others write would not be whole or not there."""

import pathlib
import re
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]
HOME = "src/base/file.cc"
WRITES = re.compile(r"\bofstream\b|\bstd::fstream\b|\bf(re)?open\s*\(|\bcreat\s*\(|\bO_(WRONLY|RDWR)\b")
COMMENT = re.compile(r"//.*")
NOWHERE = '"/dev/null"'  # nobody reads that


def writers(root):
    """One sentence for every place in src/ that opens a file to write."""
    wrong = []
    for path in sorted((root / "src").rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.suffix not in (".cc", ".h") or name == HOME:
            continue
        for number, line in enumerate(COMMENT.sub("", path.read_text()).splitlines(), 1):
            if WRITES.search(line) and NOWHERE not in line:
                wrong.append(f"{name}:{number}: {line.strip()}; write with base/file.h")
    return wrong


class Writers(unittest.TestCase):
    def test_only_one_file_writes(self):
        self.assertEqual(writers(ROOT), [])

    def test_it_is_there(self):
        self.assertIn("O_WRONLY", (ROOT / HOME).read_text())


class Checker(unittest.TestCase):
    """The checker itself, on trees that break the rule."""

    def found(self, name, text):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True)
            path.write_text(text)
            return writers(pathlib.Path(folder))

    def test_sees_every_way_to_write(self):
        for line in ("std::ofstream out(path);", "FILE* f = fopen(path, \"w\");", "std::fstream both(path);",
                     "int f = open(path, O_WRONLY | O_CREAT, 0666);", "int f = creat(path, 0666);"):
            self.assertEqual(self.found("src/cli/a.cc", f"int x;\n{line}\n"),
                             [f"src/cli/a.cc:2: {line}; write with base/file.h"])

    def test_lets_others_read(self):
        for line in ("std::ifstream in(path);", "// no ofstream here", "app.open(path);", "int f = open(path, O_RDONLY);",
                     'int nowhere = open("/dev/null", O_WRONLY);'):
            self.assertEqual(self.found("src/cli/a.cc", line), [])

    def test_lets_the_one_file_write(self):
        self.assertEqual(self.found(HOME, "int f = open(path, O_WRONLY);"), [])


if __name__ == "__main__":
    unittest.main()
