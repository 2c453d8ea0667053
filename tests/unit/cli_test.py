"""What every verb of the command promises: help with an example, the shared flags, one JSON object, exit codes."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

PARTITA = sys.argv.pop(1)
DATA = pathlib.Path(__file__).resolve().parents[1] / "data"


def partita(*arguments):
    return subprocess.run([PARTITA, *arguments], capture_output=True, text=True, timeout=60)


def verbs(prefix=()):
    """Every verb that does something, `lab schedule` and not `lab`, as lists of words."""
    listing = partita(*prefix, "--help").stdout.partition("Subcommands:\n")[2]
    names = re.findall(r"^  (\S+)", listing, re.MULTILINE)
    if not names:
        return [list(prefix)]
    return [leaf for name in names for leaf in verbs((*prefix, name))]


class EveryVerb(unittest.TestCase):
    def test_help_has_an_example_and_the_shared_flags(self):
        self.assertGreaterEqual(len(verbs()), 3)
        for verb in verbs():
            with self.subTest(verb=" ".join(verb)):
                done = partita(*verb, "--help")
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                for needed in ("Example", "--json", "--quiet", "--progress", " ".join(["partita", *verb])):
                    self.assertIn(needed, done.stdout)

    def test_a_mistyped_flag_names_the_nearest(self):
        for verb in verbs():
            with self.subTest(verb=" ".join(verb)):
                done = partita(*verb, "--jsn")
                self.assertEqual((done.returncode, done.stdout), (2, ""))
                self.assertIn("unknown flag --jsn", done.stderr)
                self.assertIn("did you mean '--json'?", done.stderr)


class Configs(unittest.TestCase):
    CONFIG = {"model_type": "llama", "torch_dtype": "bfloat16", "num_hidden_layers": 1, "hidden_size": 64,
              "num_attention_heads": 4, "intermediate_size": 64}

    def test_notes_are_in_the_json_too_and_said_once(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "config.json").write_text(json.dumps(self.CONFIG))
            done = partita("plan", folder, "--cluster", "2xcpu", "--batch", "4", "--seq", "8", "--strict", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        notes = json.loads(done.stdout)["notes"]
        self.assertEqual([note.partition("config.json: ")[2] for note in notes],
                         ["torch_dtype bfloat16 taken as --precision bf16",
                          "vocab_size not given, 32000 taken (Hugging Face's default)"])
        self.assertEqual(done.stderr.splitlines(), [f"note: {note}" for note in notes])

    def test_capture_says_which_python_it_lacks(self):
        done = subprocess.run([PARTITA, "capture", "config.json", "-o", "x.model.json"], capture_output=True, text=True,
                              env={**os.environ, "PARTITA_PYTHON": "/nonexistent/python"}, timeout=60)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("needs a Python with torch, and /nonexistent/python has none", done.stderr)


class Answers(unittest.TestCase):
    def test_profile_has_the_promised_keys(self):
        done = partita("profile", str(DATA / "gpt2-tiny.model.json"), "--json")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        profile = json.loads(done.stdout)
        for key in ("ops", "opaque_ops", "params", "param_bytes", "saved_bytes", "peak_bytes", "seconds_to_profile"):
            self.assertIsInstance(profile[key], (int, float), key)
        self.assertEqual(set(profile["flops"]), {"forward", "backward"})
        self.assertEqual(sum(module["params"] for module in profile["modules"]), profile["params"])

    def test_json_is_one_object_with_the_promised_keys(self):
        for verb, key in (("devices", "names"), ("doctor", "checks")):
            done = partita(verb, "--json")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertTrue(json.loads(done.stdout)[key])

    def test_quiet_prints_nothing(self):
        done = partita("devices", "--quiet")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def test_every_listed_device_is_a_cluster(self):
        for name in json.loads(partita("devices", "--json").stdout)["names"]:
            self.assertEqual(partita("devices", "--cluster", f"2x4x{name}").returncode, 0, name)


class ProgramFiles(unittest.TestCase):
    """`lower` writes Programs of ranks and of classes, and certifies files of both."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.plan = str(pathlib.Path(self.folder.name) / "plan.json")
        done = partita("recipe", "zero1", "gpt2-tiny", "--ranks", "4", "-o", self.plan)
        self.assertEqual(done.returncode, 0, done.stderr)

    def lowered(self, *flags):
        file = pathlib.Path(self.folder.name) / "program.json"
        done = partita("lower", "gpt2-tiny", self.plan, *flags, "-o", str(file))
        self.assertEqual(done.returncode, 0, done.stderr)
        return file

    def certified(self, file):
        done = partita("lower", "gpt2-tiny", self.plan, "--program", str(file), "--json")
        return done.returncode, json.loads(done.stdout)

    def test_both_kinds_are_certified(self):
        for flags, classes in (((), 4), (("--folded",), 1)):
            code, answer = self.certified(self.lowered(*flags))
            self.assertEqual((code, answer["certified"], answer["ranks"], answer["classes"]), (0, True, 4, classes))

    def test_a_broken_one_is_refused(self):
        file = self.lowered("--folded")
        program = json.loads(file.read_text())
        program["ranks"][0]["results"] = program["ranks"][0]["results"][:-1]
        file.write_text(json.dumps(program))
        code, answer = self.certified(file)
        self.assertEqual((code, answer["certified"]), (3, False))
        self.assertIn("is never updated", answer["refused"][0])


if __name__ == "__main__":
    unittest.main()
