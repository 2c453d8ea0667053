"""Ctrl-C ends every verb soon, and `plan` gives the best that it has."""

import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PARTITA = sys.argv.pop(1)
LLAMA = ("plan", "llama-3.1-405b", "--cluster", "64x8xH100-80GB", "--batch", "512", "--dtype", "bf16", "--effort", "5",
         "--strict")
MIXTRAL = ("plan", "mixtral-8x22b", "--cluster", "16x8xH100-80GB", "--batch", "256", "--dtype", "bf16", "--effort", "5",
           "--strict")
NOTHING_FITS = ("plan", "mixtral-8x7b", "--cluster", "2xA100-80GB", "--batch", "8", "--dtype", "bf16", "--memory", "1GiB",
                "--strict")
SOON = 3.0  # seconds, on a machine that has more to do
NO_PLAN_YET = "^interrupted: no plan (was found yet|fits .* was not found yet)\n$"


class Interrupted:
    """A command that gets Ctrl-C after some seconds, and how long it took to end then."""

    def __init__(self, arguments, delay, folder=None, times=1):
        process = subprocess.Popen([PARTITA, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   cwd=folder)
        try:
            process.communicate(timeout=delay)
            self.ended_before = True
        except subprocess.TimeoutExpired:
            self.ended_before = False
        start = time.monotonic()
        for _ in range(times):
            process.send_signal(signal.SIGINT)
        self.stdout, self.stderr = process.communicate(timeout=60)
        self.seconds, self.code = time.monotonic() - start, process.returncode


class Plan(unittest.TestCase):
    def check_end(self, arguments, delay):
        done = Interrupted(arguments, delay)
        print(f"{arguments[1]} after {delay} s: exit {done.code} in {done.seconds:.2f} s", file=sys.stderr)
        if done.ended_before:
            return
        self.assertLess(done.seconds, SOON)
        if done.code == 130:
            self.assertEqual(done.stdout, "")
            self.assertRegex(done.stderr, NO_PLAN_YET)
        else:
            self.assertEqual((done.code, done.stderr), (0, ""))
            self.assertIn("\nStopped early: the best so far.\n", done.stdout)
            self.assertIn("fastest that fits", done.stdout)

    def test_of_a_large_model_ends_soon(self):
        for delay in (0.05, 0.3, 1, 2, 5):
            with self.subTest(delay=delay):
                self.check_end(LLAMA, delay)

    def test_of_a_mixture_of_experts_ends_soon(self):
        for delay in (0.05, 0.3, 1, 2, 5):
            with self.subTest(delay=delay):
                self.check_end(MIXTRAL, delay)

    def test_ends_while_it_looks_for_what_would_do(self):
        for delay in (0.3, 1, 3):
            with self.subTest(delay=delay):
                done = Interrupted(NOTHING_FITS, delay)
                if done.ended_before:
                    continue
                self.assertLess(done.seconds, SOON)
                self.assertEqual((done.code, done.stdout), (130, ""))
                self.assertRegex(done.stderr, NO_PLAN_YET)

    def test_writes_the_best_so_far_or_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            done = Interrupted((*LLAMA, "--json", "-o", "plan.json"), 3, folder)
            names = [path.name for path in pathlib.Path(folder).iterdir()]
            self.assertEqual(names, ["plan.json"] if done.code == 0 else [])
            if done.code == 0 and not done.ended_before:
                answer = json.loads(done.stdout)
                self.assertIs(answer["interrupted"], True)
                self.assertEqual(answer["plans"][0]["plan"], json.loads(pathlib.Path(folder, "plan.json").read_text()))

    def test_a_second_one_ends_it_at_once(self):
        done = Interrupted(LLAMA, 0.5, times=2)
        self.assertLess(done.seconds, SOON)
        self.assertIn(done.code, (-signal.SIGINT, 130, 0))


class Others(unittest.TestCase):
    def test_end_at_once(self):
        with tempfile.TemporaryDirectory() as folder:
            recipe = ["recipe", "pipeline", "llama-3.1-405b", "--ranks", "16", "--microbatches", "256", "--batch", "256",
                      "-o", "plan.json"]
            subprocess.run([PARTITA, *recipe], cwd=folder, check=True, capture_output=True, timeout=60)
            for verb in (("lower", "llama-3.1-405b", "plan.json"),
                         ("simulate", "llama-3.1-405b", "plan.json", "--cluster", "2x8xH100-80GB"),
                         ("explain", "plan.json", "--cluster", "2x8xH100-80GB")):
                with self.subTest(verb[0]):
                    done = Interrupted(verb, 0.5, folder)
                    if not done.ended_before:
                        self.assertEqual(done.code, -signal.SIGINT)
                        self.assertLess(done.seconds, SOON)
            self.assertEqual([path.name for path in pathlib.Path(folder).iterdir()], ["plan.json"])


if __name__ == "__main__":
    unittest.main()
