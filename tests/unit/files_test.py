"""What the command writes is whole or not there: full disks, limits, links, and what lies behind standard output."""

import json
import pathlib
import resource
import subprocess
import sys
import tempfile
import unittest

PARTITA = sys.argv.pop(1)
MODEL = str(pathlib.Path(__file__).resolve().parents[1] / "data/gpt2-tiny.model.json")
RECIPE = ("recipe", "dp", MODEL, "--ranks", "2")
LIMIT = 100  # bytes, less than a plan has


def small_files():
    """No file may grow beyond LIMIT, as on a disk that is nearly full."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_verb(self, *arguments, **options):
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        return subprocess.run([PARTITA, *arguments], text=True, timeout=60, cwd=self.folder, **options)

    def refused(self, sentence, *arguments, **options):
        done = self.run_verb(*arguments, **options)
        self.assertEqual((done.returncode, done.stderr), (2, f"error: {sentence}\n"))

    def names(self):
        return sorted(path.name for path in self.folder.iterdir())

    def test_a_full_disk_is_an_error_of_every_writer(self):
        full = "/dev/full: cannot write this file: No space left on device; free some space or write elsewhere"
        self.run_verb(*RECIPE, "-o", "plan.json")
        writers = [(*RECIPE, "-o", "/dev/full"),
                   ("plan", MODEL, "--cluster", "2xcpu", "--effort", "1", "--strict", "-o", "/dev/full"),
                   ("models", "gpt2-tiny", "-o", "/dev/full"),
                   ("lower", MODEL, "plan.json", "-o", "/dev/full"),
                   ("lower", MODEL, "plan.json", "--rank", "0", "-o", "/dev/full"),
                   ("simulate", MODEL, "plan.json", "--cluster", "2xcpu", "--trace", "/dev/full"),
                   ("lab", "schedule", "--name", "1f1b", "--devices", "2", "--microbatches", "4", "--forward", "1",
                    "--backward", "2", "--csv", "/dev/full")]
        for arguments in writers:
            with self.subTest(" ".join(arguments)):
                self.refused(full, *arguments)

    def test_the_old_file_survives_a_full_disk(self):
        plan = self.folder / "plan.json"
        plan.write_text("old")
        self.refused("plan.json: cannot write this file: File too large; raise the limit of file sizes (ulimit -f)",
                     *RECIPE, "-o", "plan.json", preexec_fn=small_files)
        self.assertEqual((plan.read_text(), self.names()), ("old", ["plan.json"]))

    def test_a_folder_of_phases_keeps_what_was_whole(self):
        self.run_verb(*RECIPE, "-o", "plan.json")
        (self.folder / "phases").mkdir()
        (self.folder / "phases/00-model.json").write_text("old")
        self.refused("phases/00-model.json: cannot write this file: File too large; raise the limit of file sizes "
                     "(ulimit -f)", "lower", MODEL, "plan.json", "--dump-dir", "phases", preexec_fn=small_files)
        self.assertEqual((self.folder / "phases/00-model.json").read_text(), "old")
        self.assertEqual([path.name for path in (self.folder / "phases").iterdir()], ["00-model.json"])

    def test_a_folder_is_no_file(self):
        (self.folder / "plan.json").mkdir()
        self.refused("plan.json: cannot write this file: Is a directory; name a file in this folder",
                     *RECIPE, "-o", "plan.json")
        self.assertEqual(self.names(), ["plan.json"])

    def test_standard_output_can_be_the_file(self):
        done = self.run_verb(*RECIPE, "--quiet", "-o", "/dev/stdout")
        self.assertEqual((done.returncode, json.loads(done.stdout)["format"]), (0, "partita.plan"))
        both = self.folder / "both.txt"
        with both.open("w") as out:
            self.run_verb(*RECIPE, "-o", "/dev/stdout", stdout=out)
        text = both.read_text()
        self.assertTrue(text.startswith("{") and text.endswith("}\n/dev/stdout: dp2, float32\n"), text)
        self.assertEqual(self.names(), ["both.txt"])

    def test_a_full_standard_output_is_an_error(self):
        sentence = ("standard output: cannot write all of it: No space left on device; "
                    "free some space or write elsewhere")
        for arguments in (("models",), ("models", "--json"), ("--help",), ("plan", "--help"), ("--version",),
                          ("devices", "--json"), (*RECIPE, "--json")):
            with self.subTest(" ".join(arguments)), open("/dev/full", "w") as out:
                self.refused(sentence, *arguments, stdout=out)

    def test_a_closed_pipe_ends_it_quietly(self):
        done = subprocess.run(f"{PARTITA} models --json | head -c 1", shell=True, capture_output=True, text=True)
        self.assertEqual((done.stdout, done.stderr), ("{", ""))


if __name__ == "__main__":
    unittest.main()
