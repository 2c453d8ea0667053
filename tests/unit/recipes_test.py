"""What `recipe` writes, `lower` takes: a product of recipes that does not suit a model is refused where it is asked for.

usage: recipes_test.py PARTITA
"""

import itertools
import subprocess
import sys
import tempfile
import unittest

PARTITA = sys.argv.pop(1)
RECIPES = "dp zero1 zero2 zero3 osdp tp sp cp ep pipeline interlaced 3f1b coshard loss-pieces".split()
MODELS = "gpt2-tiny llama-tiny mixtral-tiny evoformer-tiny".split()
MICROBATCHES = (1, 2, 5)


def partita(*words, folder):
    return subprocess.run([PARTITA, *map(str, words)], capture_output=True, text=True, timeout=120, cwd=folder)


class Recipes(unittest.TestCase):
    def test_what_is_written_is_lowered(self):
        written = 0
        with tempfile.TemporaryDirectory() as folder:
            for model, name, parts in itertools.product(MODELS, RECIPES, MICROBATCHES):
                words = ("recipe", name, model, "--batch", 10, "--ranks", 2, "--microbatches", parts, "-o", "plan.json")
                done = partita(*words, folder=folder)
                if done.returncode == 2:
                    self.assertRegex(done.stderr, "^error: recipe")
                    continue
                self.assertEqual((done.returncode, done.stderr), (0, ""), words)
                lowered = partita("lower", model, "plan.json", folder=folder)
                self.assertEqual((lowered.returncode, lowered.stderr), (0, ""), words)
                written += 1
        self.assertGreater(written, 60)


if __name__ == "__main__":
    unittest.main()
