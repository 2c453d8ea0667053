"""`partita lab choose` against every row of tests/data/osdp_cases.csv.

usage: choose_cases_test.py PARTITA

The option tables are the measured blocks of osdp_block_table.csv, priced by the rules of the case file: the
megabytes of each block floored, 800 MB taken off the limit.
"""
import csv
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import unittest

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"
PARTITA = sys.argv.pop(1)
RESERVE_MB = 800
ROWS_OF_BATCH = 96


def rows(name):
    with open(DATA / name, newline="") as file:
        return list(csv.DictReader(file))


BLOCKS = {(row["hidden"], row["batch_index"]): row for row in rows("osdp_block_table.csv")}


def problem(layers, limit_mb, batch_index, to_whole=math.floor, unit=1):
    operators = []
    for part in layers.split("+"):
        count, hidden = part.split("x")
        block = BLOCKS[hidden, batch_index]
        options = [{"name": str(k), "seconds": float(block[f"time_s_{k}"]),
                    "bytes": to_whole(float(block[f"mem_mb_{k}"]) * unit), "transient": 0} for k in range(4)]
        operators.append({"count": int(count), "options": options})
    return {"budget": (int(limit_mb) - RESERVE_MB) * unit, "operators": operators}


def choose(value):
    """(exit code, JSON answer)."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "options.json")
        path.write_text(json.dumps(value))
        done = subprocess.run([PARTITA, "lab", "choose", "--options", path, "--json"], capture_output=True, text=True)
    return done.returncode, json.loads(done.stdout)


class Cases(unittest.TestCase):
    def test_every_row(self):
        for row in rows("osdp_cases.csv"):
            with self.subTest(row=row):
                code, answer = choose(problem(row["layers"], row["limit_mb"], row["batch_index"]))
                if row["best_time_s"] == "infeasible":
                    self.assertEqual(code, 1)
                    if row["note"]:
                        self.assertIn(f"{answer['least_bytes']} + {RESERVE_MB} MB", row["note"])
                    continue
                self.assertEqual(code, 0)
                self.assertAlmostEqual(answer["seconds"], float(row["best_time_s"]), delta=1e-9)
                self.assertEqual("/".join(map(str, answer["chosen"][0].values())), row["counts_0_1_2_3"])
                self.assertEqual(answer["bytes"], int(row["used_mb"]))
                self.assertEqual(answer["gap"], 0)
                print(f"{row['id']:4} {row['layers']:8} index {row['batch_index']}: {1e3 * answer['solve_seconds']:.3f} ms")

    def test_the_sweep_takes_the_batch_of_most_samples_per_second(self):
        """Not the one of least time: 8x4096 at 8192 MB is best at index 3; from index 4 on nothing fits."""
        sweep = [{"samples": ROWS_OF_BATCH * k, **problem("8x4096", 8192, str(k))} for k in range(1, 5)]
        code, answer = choose(sweep)
        self.assertEqual(code, 0)
        self.assertEqual(answer["samples"], 3 * ROWS_OF_BATCH)
        self.assertAlmostEqual(answer["samples_per_second"], 3 * ROWS_OF_BATCH / 4.314853988, delta=1e-6)
        self.assertEqual(answer["chosen"], [{"0": 0, "1": 0, "2": 2, "3": 6}])
        self.assertEqual([entry["samples"] for entry in answer["sweep"]], [96, 192, 288, 384])
        self.assertIn("least_bytes", answer["sweep"][3])

    def test_a_sweep_of_which_nothing_fits_says_the_least(self):
        code, answer = choose([{"samples": k, **problem("24x3072", 8192, str(k))} for k in (1, 2)])
        self.assertEqual((code, answer["least_bytes"]), (1, 7872))

    def test_inconsistent_stacks_in_bytes_rounded_up(self):
        """Mixed hidden sizes in whole bytes: within the budget, and never slower with more of it."""
        last = math.inf
        for limit in (9000, 12000, 16384, 24576):
            code, answer = choose(problem("24x1024+12x1536+6x2048", limit, "2", math.ceil, 10**6))
            self.assertEqual((code, answer["gap"]), (0, 0))
            self.assertLessEqual(answer["bytes"], (limit - RESERVE_MB) * 10**6)
            self.assertLessEqual(answer["seconds"], last)
            last = answer["seconds"]

    def test_the_largest_of_sums_holds_more_than_the_sum_of_the_largest(self):
        """Two moments of a block of P bytes, f of them unsharded: 0.5 P + f P + activations when forward ends,
        0.5 P + 3 f P when backward does. Adding each block's larger one wastes what the other leaves free."""
        def options(hidden, activations, moments):
            size = 4 * (12 * hidden**2 + 13 * hidden)
            block = BLOCKS[str(hidden), "1"]
            return [{"name": str(k), "seconds": float(block[f"time_s_{k}"]),
                     "bytes": moments([size / 2 + f * size + activations, size / 2 + 3 * f * size])}
                    for k, f in enumerate((1, 2 / 3, 1 / 3, 0))]

        def stack(moments):
            # Blocks that keep much of what they compute, and blocks that keep little.
            return {"budget": "9GB", "operators": [{"count": 24, "options": options(1536, 220e6, moments)},
                                                   {"count": 12, "options": options(2048, 10e6, moments)}]}

        code, apart = choose(stack(list))
        self.assertEqual((code, apart["gap"]), (0, 0))
        self.assertEqual(max(apart["bytes_by_moment"]), apart["bytes"])
        code, added = choose(stack(max))
        self.assertEqual(code, 0)
        self.assertLess(apart["seconds"], added["seconds"])


if __name__ == "__main__":
    unittest.main()
