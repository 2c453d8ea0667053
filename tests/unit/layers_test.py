"""Compares the #includes of src/ with layers.txt, and keeps torch headers where they belong."""

import pathlib
import re
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)
TORCH = re.compile(r"^(torch|ATen|c10|caffe2)/")
TORCH_PLACES = ("src/run/torch/", "python/partita/binding.cc")


def read_layers(path):
    """{folder: folders it names directly}."""
    layers = {}
    for line in path.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            folder, _, below = line.partition("<-")
            layers[folder.strip()] = below.split()
    return layers


def reachable(layers, folder, seen=()):
    """Every folder below `folder`; a cycle is an error."""
    if folder in seen:
        raise ValueError(f"layers.txt: {' <- '.join([*seen, folder])} is a cycle")
    found = set()
    for below in layers[folder]:
        found |= {below} | reachable(layers, below, (*seen, folder))
    return found


def sources(root):
    for folder in ("src", "python"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".h", ".cc"):
                yield path.relative_to(root).as_posix(), path.read_text()


def violations(root):
    """One sentence for every include that goes against layers.txt."""
    layers = read_layers(root / "layers.txt")
    allowed = {folder: {folder} | reachable(layers, folder) for folder in layers}
    wrong = []
    for name, text in sources(root):
        folder = name.split("/")[1] if name.startswith("src/") else None
        if folder and folder not in layers:
            wrong.append(f"{name}: folder {folder} is not in layers.txt")
            continue
        for quote, target in INCLUDE.findall(text):
            if TORCH.match(target) and not name.startswith(TORCH_PLACES):
                wrong.append(f"{name} includes {target}; only {' and '.join(TORCH_PLACES)} may")
            top = target.split("/")[0]
            if folder and quote == '"' and top in layers and top not in allowed[folder]:
                wrong.append(f"{name} includes {target}; layers.txt does not let {folder} reach {top}")
    return wrong


def twice(headers):
    """One sentence for every type that two headers define in one namespace: the linker mixes their code silently."""
    homes = {}
    for name, text in headers:
        namespace = re.search(r"^namespace ([\w:]+) \{", text, re.MULTILINE)
        for defined in re.findall(r"^(?:struct|class) (\w+)(?: final)? (?::|\{)", text, re.MULTILINE):
            homes.setdefault(f"{namespace.group(1) if namespace else ''}::{defined}", []).append(name)
    return [f"{defined} is defined in {' and '.join(names)}" for defined, names in homes.items() if len(names) > 1]


class Layers(unittest.TestCase):
    def test_a_type_is_defined_once(self):
        self.assertEqual(twice((name, text) for name, text in sources(ROOT) if name.endswith(".h")), [])

    def test_the_tree_keeps_its_layers(self):
        self.assertEqual(violations(ROOT), [])

    def test_every_source_folder_has_a_layer(self):
        folders = {path.name for path in (ROOT / "src").iterdir() if path.is_dir()}
        self.assertEqual(folders - set(read_layers(ROOT / "layers.txt")), set())


class Checker(unittest.TestCase):
    def test_sees_a_type_defined_twice(self):
        text = "namespace partita {\nstruct Op {\n  int line;\n};\n}\n"
        self.assertEqual(twice([("a.h", text), ("b.h", text), ("c.h", text.replace("partita", "other"))]),
                         ["partita::Op is defined in a.h and b.h"])

    """The checker itself, on trees that break a rule."""

    def found(self, layers, files):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "layers.txt").write_text(layers)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return violations(root)

    def test_an_upward_include(self):
        self.assertEqual(
            self.found("base <-\nmodel <- base\n", {"src/base/a.h": '#include "model/b.h"\n', "src/model/b.h": ""}),
            ["src/base/a.h includes model/b.h; layers.txt does not let base reach model"])

    def test_what_lies_further_below_may_be_included(self):
        self.assertEqual(
            self.found("base <-\nmodel <- base\nplan <- model\n", {"src/plan/a.h": '#include "base/b.h"\n'}), [])

    def test_torch_headers_outside_run(self):
        wrong = self.found("model <-\nrun <-\n", {"src/model/a.cc": "# include <ATen/core.h>\n",
                                                   "src/run/torch/b.cc": "#include <c10/x.h>\n",
                                                   "src/run/c.cc": '#include "torch/y.h"\n'})
        self.assertEqual([sentence.split(";")[0] for sentence in wrong],
                         ["src/model/a.cc includes ATen/core.h", "src/run/c.cc includes torch/y.h"])

    def test_a_folder_without_a_layer(self):
        self.assertEqual(self.found("base <-\n", {"src/utils/a.h": ""}),
                         ["src/utils/a.h: folder utils is not in layers.txt"])

    def test_a_cycle(self):
        with self.assertRaisesRegex(ValueError, "a <- b <- a is a cycle"):
            self.found("a <- b\nb <- a\n", {})


if __name__ == "__main__":
    unittest.main()
