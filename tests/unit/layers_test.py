"""Compares the #includes and namespaces of src/ with layers.txt, both ways; looks for cycles of includes; keeps torch headers
where they belong."""

import pathlib
import re
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parents[2]
INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)
TORCH = re.compile(r"^(torch|ATen|c10|caffe2)/")
NAMESPACES = "src/base/namespaces.h"
TORCH_PLACES = ("src/run/torch/", "python/partita/binding/run.cc", "python/partita/binding/tensors.")
# Only the host's own Memory, and values that users give and get, are bytes to the runtime.
BYTE_PLACES = ("src/run/cpu/", "src/run/host_tensor.")


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


def unused(root):
    """One sentence for every arrow of layers.txt that no #include goes along."""
    layers = read_layers(root / "layers.txt")
    used = {folder: set() for folder in layers}
    for name, text in sources(root):
        folder = name.split("/")[1]
        if name.startswith("src/") and folder in used:
            used[folder] |= {target.split("/")[0] for quote, target in INCLUDE.findall(text) if quote == '"'}
    return [f"layers.txt: {folder} includes nothing of {below}"
            for folder, arrows in layers.items() for below in arrows if below not in used[folder]]


def seen_names(text):
    """{namespace: those whose names it sees}, as namespaces.h says."""
    return {folder: re.findall(r"using namespace (\w+);", body)
            for folder, body in re.findall(r"^namespace (\w+) \{([^{}]*)\}", text, re.MULTILINE)}


def strangers(root):
    """One sentence for every file of src/ that is not in the namespace of its folder."""
    wrong = []
    for name, text in sources(root):
        opened = re.findall(r"^namespace (partita[\w:]*) \{", text, re.MULTILINE)
        if name.startswith("src/") and name != NAMESPACES:
            home = f"partita::{name.split('/')[1]}"
            wrong += [f"{name} opens {found}, not {home}" for found in opened if f"{found}::".find(f"{home}::") != 0]
    return wrong


def knots(root, most=2):
    """Components (a header with its source) that include each other in a circle of more than `most`."""
    includes = {}
    for name, text in sources(root):
        if name.startswith("src/"):
            found = includes.setdefault(component(name[4:]), set())
            found |= {component(target) for quote, target in INCLUDE.findall(text) if quote == '"'}
    def beyond(start):
        found, open_ = set(), [start]
        while open_:
            for target in includes.get(open_.pop(), ()):
                if target not in found and target in includes:
                    found.add(target)
                    open_.append(target)
        return found
    reached = {name: beyond(name) for name in includes}
    circles = {tuple(sorted(other for other in reached[name] if name in reached[other])) for name in includes}
    return [f"{' and '.join(circle)} include each other" for circle in sorted(circles) if len(circle) > most]


def schedules_named(root):
    """One sentence for every name of a pipeline schedule that stands outside of src/schedule."""
    rows = (root / "src/schedule/schedule.cc").read_text()
    names = re.findall(r'\{\.name = "([\w-]+)"', rows)
    python = ((path.relative_to(root).as_posix(), path.read_text()) for path in sorted((root / "python").rglob("*.py")))
    return [f'{name} says "{schedule}"' for name, text in [*sources(root), *python] for schedule in names
            if not name.startswith("src/schedule/") and re.search(rf'^(?!\s*//).*["\']{re.escape(schedule)}["\']', text, re.MULTILINE)]


def bytes_seen(root):
    """One sentence for every file of src/run that looks into tensors beside the Memory."""
    return [f"{name} names std::byte; only {' and '.join(BYTE_PLACES)}* may" for name, text in sources(root)
            if name.startswith("src/run/") and not name.startswith(BYTE_PLACES) and "std::byte" in text]


def component(path):
    return path.rsplit(".", 1)[0]


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
        for defined in re.findall(r"^(?:struct|class|enum class|enum) (\w+)(?: final)? (?::|\{)", text, re.MULTILINE):
            homes.setdefault(f"{namespace.group(1) if namespace else ''}::{defined}", []).append(name)
    return [f"{defined} is defined in {' and '.join(names)}" for defined, names in homes.items() if len(names) > 1]


class Layers(unittest.TestCase):
    def test_a_type_is_defined_once(self):
        self.assertEqual(twice((name, text) for name, text in sources(ROOT) if name.endswith(".h")), [])

    def test_the_tree_keeps_its_layers(self):
        self.assertEqual(violations(ROOT), [])

    def test_every_arrow_of_layers_is_used(self):
        self.assertEqual(unused(ROOT), [])

    def test_every_folder_has_a_layer_and_every_layer_a_folder(self):
        folders = {path.name for path in (ROOT / "src").iterdir() if path.is_dir()}
        self.assertEqual(folders, set(read_layers(ROOT / "layers.txt")))

    def test_a_namespace_for_every_folder(self):
        self.assertEqual(strangers(ROOT), [])
        self.assertEqual(seen_names((ROOT / NAMESPACES).read_text()), read_layers(ROOT / "layers.txt"))

    def test_schedules_are_named_in_their_folder(self):
        self.assertEqual(schedules_named(ROOT), [])

    def test_tensors_are_opaque_outside_of_their_memory(self):
        self.assertEqual(bytes_seen(ROOT), [])

    def test_no_circle_of_more_than_two_files(self):
        self.assertEqual(knots(ROOT), [])


class Checker(unittest.TestCase):
    """The checker itself, on trees that break a rule."""

    def found(self, layers, files, look=violations):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "layers.txt").write_text(layers)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return look(root)

    def test_sees_a_type_defined_twice(self):
        for kind in ("struct", "enum class"):
            text = f"namespace partita {{\n{kind} Op {{\n  int line;\n}};\n}}\n"
            self.assertEqual(twice([("a.h", text), ("b.h", text), ("c.h", text.replace("partita", "other"))]),
                             ["partita::Op is defined in a.h and b.h"])

    def test_a_schedule_named_elsewhere(self):
        files = {"src/schedule/schedule.cc": '{.name = "1f1b", .make = f},\n',
                 "src/plan/a.cc": '// {"schedule": "1f1b"}\nx = "1f1b";\n', "src/plan/b.cc": '// "1f1b"\n',
                 "python/c.py": "x = '1f1b'\n"}
        self.assertEqual(self.found("plan <-\n", files, schedules_named),
                         ['src/plan/a.cc says "1f1b"', 'python/c.py says "1f1b"'])

    def test_a_tensor_that_is_looked_into(self):
        text = "std::byte* data;\n"
        self.assertEqual(self.found("run <-\n", {"src/run/a.h": text, "src/run/cpu/b.cc": text}, bytes_seen),
                         ["src/run/a.h names std::byte; only src/run/cpu/ and src/run/host_tensor.* may"])

    def test_an_arrow_that_nobody_uses(self):
        self.assertEqual(self.found("base <-\nmodel <- base\n", {"src/model/a.h": '#include "model/b.h"\n'}, unused),
                         ["layers.txt: model includes nothing of base"])

    def test_another_namespace(self):
        files = {"src/base/a.h": "namespace partita::base {\n", "src/base/b.h": "namespace partita::base::deep {\n",
                 "src/base/c.h": "namespace partita::basement {\n"}
        self.assertEqual(self.found("base <-\n", files, strangers),
                         ["src/base/c.h opens partita::basement, not partita::base"])

    def test_a_circle_of_files(self):
        def includes(*names):
            return "".join(f'#include "base/{name}.h"\n' for name in names)
        files = {"src/base/a.h": includes("b"), "src/base/b.cc": includes("b", "c"), "src/base/b.h": "",
                 "src/base/c.h": includes("a", "d"), "src/base/d.h": ""}
        self.assertEqual(self.found("base <-\n", files, knots), ["base/a and base/b and base/c include each other"])

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
