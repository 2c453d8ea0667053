"""What verbs say of a plan: dtype, fit, throughput, what was checked, and what they refuse to run on this machine.

usage: answers_test.py PARTITA
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

PARTITA = os.path.abspath(sys.argv.pop(1))
GIB = 1 << 30
NEW_KEYS = ("dtype", "fits", "reserve_bytes", "micro_batch_size", "tokens_per_second_per_device", "tflops_per_device", "mfu")


def partita(*words, folder=None, **environment):
    strict = ["--strict"] if words[0] == "plan" else []
    return subprocess.run([PARTITA, *map(str, words), *strict], capture_output=True, text=True, timeout=120, cwd=folder,
                          env={**os.environ, **environment})


def answer(*words, folder=None):
    done = partita(*words, "--json", folder=folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Answers(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def ask(self, *words):
        return answer(*words, folder=self.folder.name)

    def say(self, *words):
        done = partita(*words, folder=self.folder.name)
        self.assertEqual((done.returncode, done.stderr), (0, ""), words)
        return done.stdout

    def test_a_plan_without_faults_has_no_warnings(self):
        found = self.ask("plan", "gpt2-tiny", "--cluster", "2xcpu", "--effort", 1)
        self.assertEqual((found["warnings"], found["left_out"]), ([], 0))

    def test_plan_says_dtype_limit_and_throughput(self):
        words = ("plan", "gpt2-tiny", "--cluster", "4xA100-80GB", "--batch", 16, "--effort", 1, "--allow", "ddp,fsdp")
        found = self.ask(*words, "--precision", "bf16")
        best = found["plans"][0]
        for key in NEW_KEYS:
            self.assertIn(key, found)
        self.assertEqual((found["dtype"], found["fits"], best["checked"]), ("bfloat16", True, True))
        self.assertEqual(found["reserve_bytes"], round(0.06 * 80 * GIB))
        self.assertAlmostEqual(best["tokens_per_second_per_device"] * 4, best["tokens_per_second"])
        self.assertAlmostEqual(best["mfu"], best["tflops_per_device"] / 312)
        text = self.say(*words, "--precision", "bf16")
        self.assertIn("bfloat16, float32 gradients and master weights; global batch 16 on 4xA100-80GB; "
                      "limit 75.2 GiB = 80.0 GiB less 6 % reserve per device\n", text)
        self.assertNotIn("--precision bf16 computes", text)
        self.assertIn("float32; --precision bf16 computes up to 16x as fast on A100-80GB\n", self.say(*words))

    def test_cpus_have_no_reserve_and_no_hint(self):
        found = self.ask("plan", "gpt2-tiny", "--cluster", "2xcpu", "--memory", "16GiB", "--effort", 1)
        self.assertEqual((found["reserve_bytes"], found["limit_bytes"]), (0, 16 * GIB))
        self.assertNotIn("--precision", self.say("plan", "gpt2-tiny", "--cluster", "2xcpu", "--effort", 1))

    def test_a_plan_is_within_the_limit_of_its_reserve(self):
        least = self.ask("plan", "gpt2-tiny", "--cluster", "2xL4", "--batch", 64, "--effort", 1)["plans"][0]
        peak = max(least["peak_bytes"])
        reserve = 24 * GIB - peak + 1  # one byte less than it needs
        other = self.ask("plan", "gpt2-tiny", "--cluster", "2xL4", "--batch", 64, "--effort", 1, "--reserve", reserve)
        self.assertLess(max(other["plans"][0]["peak_bytes"]), peak)

    def test_simulate_recipe_diff_and_explain_say_whether_a_plan_fits(self):
        made = self.ask("recipe", "ddp", "gpt2-tiny", "--cluster", "2xL4", "--batch", 8, "-o", "dp.json")
        self.assertTrue(made["fits"])
        peak = max(made["peak_bytes"])
        over = ("--memory", f"{peak - 1024}B")
        self.assertIn("does not fit: 1.0 KiB over", self.say("simulate", "gpt2-tiny", "dp.json", *over))
        self.assertFalse(self.ask("simulate", "gpt2-tiny", "dp.json", *over)["fits"])
        self.assertEqual(partita("simulate", "gpt2-tiny", "dp.json", *over, "--must-fit", folder=self.folder.name).returncode, 1)
        self.say("simulate", "gpt2-tiny", "dp.json", "--must-fit")
        self.assertEqual(self.ask("diff", "dp.json", "dp.json", *over)["fits"], [False, False])
        self.assertIn("does not fit: 1.0 KiB over", self.say("diff", "dp.json", "dp.json", *over))
        self.assertIn("fits 22.6 GiB; limit 22.6 GiB = 24.0 GiB less 6 % reserve per device", self.say("explain", "dp.json"))
        for key in NEW_KEYS:
            self.assertIn(key, self.ask("simulate", "gpt2-tiny", "dp.json"))

    def test_recipe_without_a_cluster_says_nothing_about_fit(self):
        made = self.ask("recipe", "dp", "gpt2-tiny", "--ranks", 2, "-o", "dp.json")
        self.assertNotIn("fits", made)
        self.assertEqual(made["dtype"], "float32")
        self.assertIn(", float32\n", self.say("recipe", "dp", "gpt2-tiny", "--ranks", 2, "-o", "dp.json"))

    def test_micro_batches_count_samples_of_one_rank(self):
        self.say("recipe", "dp", "gpt2-tiny", "--ranks", 4, "--tp", 2, "--microbatches", 2, "--batch", 16, "-o", "a.json")
        self.assertEqual(self.ask("simulate", "gpt2-tiny", "a.json", "--cluster", "4xcpu")["micro_batch_size"], 4)
        self.say("recipe", "hsdp", "gpt2-tiny", "--ranks", 4, "--replicas", 2, "--batch", 16, "-o", "b.json")
        self.assertEqual(self.ask("simulate", "gpt2-tiny", "b.json", "--cluster", "4xcpu")["micro_batch_size"], 4)

    def test_aliases_make_the_same_plans(self):
        for alias, words in (("ddp", ["dp"]), ("fsdp", ["zero3"]), ("megatron-sp", ["sp"]), ("hsdp", ["zero3"])):
            more = ["--ranks", 4, "--batch", 8, *(["--replicas", 2] if alias == "hsdp" else [])]
            self.assertEqual(self.ask("recipe", alias, "gpt2-tiny", *more), self.ask("recipe", *words, "gpt2-tiny", *more))
        by_node = self.ask("recipe", "hsdp", "gpt2-tiny", "--cluster", "2x2xcpu", "--batch", 8)
        self.assertIn({"name": "replica", "size": 2}, by_node["plan"]["mesh"])

    def test_aliases_are_ways_of_the_planner(self):
        words = ("plan", "gpt2-tiny", "--cluster", "2xcpu", "--effort", 1)
        for alias, way in (("ddp", "dp"), ("fsdp", "zero3"), ("megatron-sp", "sp")):
            self.assertEqual(self.ask(*words, "--allow", alias)["plans"], self.ask(*words, "--allow", way)["plans"])

    def test_what_was_not_checked_never_stands_above_what_was(self):
        found = self.ask("plan", "gpt2-xl", "--cluster", "8x8xH100-80GB", "--batch", 512, "--precision", "bf16",
                         "--effort", 1)["plans"]
        lowered = [plan["lowered"] for plan in found]
        self.assertEqual(lowered, sorted(lowered, reverse=True))
        for kind in (True, False):
            seconds = [plan["step_seconds"] for plan in found if plan["lowered"] == kind]
            self.assertEqual(seconds, sorted(seconds))
        for plan in found:
            self.assertEqual("not checked" in plan["reason"], not plan["lowered"])
        self.assertIn(False, lowered)


class Running(unittest.TestCase):
    def test_a_model_that_this_machine_cannot_hold_is_refused_before_it_is_made(self):
        done = partita("train", "gpt3-175b", "--ranks", 1, "--batch", 1, "--seq", 128)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, r"error: train: needs [\d.]+ TiB for one rank, this machine has [\d.]+ \w+ free; ")

    def test_processes_of_a_launcher_are_refused(self):
        for verb in (["train", "gpt2-tiny"], ["verify", "gpt2-tiny", "plan.json"], ["calibrate", "-o", "x.json"],
                     ["lab", "race", "gpt2-tiny", "plan.json"], ["plan", "gpt2-tiny", "--cluster", "1xcpu", "--measure", 1]):
            done = partita(*verb, WORLD_SIZE="2")
            self.assertEqual(done.returncode, 2, verb)
            self.assertIn("WORLD_SIZE is 2, but ranks are threads of one process; run it once, without torchrun", done.stderr)


class Help(unittest.TestCase):
    def test_the_command_lists_its_exit_codes(self):
        self.assertIn("Exit codes: 0 done, 1 nothing fits, 2 wrong input", partita("--help").stdout)

    def test_defaults_are_shown(self):
        for verb, flag, value in (("plan", "--effort", "3"), ("plan", "--top", "5"), ("train", "--steps", "10"),
                                  ("calibrate", "--rounds", "5"), ("calibrate", "--cluster", "8xcpu")):
            lines = [line for line in partita(verb, "--help").stdout.splitlines() if line.strip().startswith(flag)]
            self.assertIn(f"={value}", lines[0].replace(" ", ""), (verb, flag))


if __name__ == "__main__":
    unittest.main()
