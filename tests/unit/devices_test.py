"""The device library says what tests/data/hardware.csv says. Usage: devices_test.py COMMAND."""

import csv
import json
import re
import subprocess
import sys
import unittest
from pathlib import Path

FILE = Path(__file__).resolve().parents[1] / "data" / "hardware.csv"
# Row of the file -> device of the library, where the first word is not its name. Half of an MI250X is one device.
NAMES = {"A100-80GB PCIe": "A100-80GB-PCIe", "H100-80GB PCIe": "H100-80GB-PCIe", "GH200-96/144GB": "GH200-96GB",
         "MI250X-128GB": "MI250X-64GB", "RTX 3090-24GB": "RTX3090-24GB", "RTX 4090-24GB": "RTX4090-24GB",
         "TPU v3 (chip)": "TPUv3-32GB", "TPU v4 (chip)": "TPUv4-32GB", "TPU v5e (chip)": "TPUv5e-16GB",
         "TPU v5p (chip)": "TPUv5p-95GB", "TPU v6e Trillium (chip)": "TPUv6e-32GB", "TPU v7x Ironwood (chip)": "TPUv7x-192GB",
         "Gaudi2": "Gaudi2-96GB", "Gaudi3": "Gaudi3-128GB"}
HALVES = {"MI250X-64GB"}


def first(text):
    """The number a cell begins with."""
    found = re.match(r"[0-9.]+", text)
    return float(found[0]) if found else None


class Devices(unittest.TestCase):
    def test_the_library_is_the_file(self):
        answer = subprocess.run([COMMAND, "devices", "--json"], check=True, capture_output=True, text=True)
        library = {device["name"]: device for device in json.loads(answer.stdout)["devices"]}
        with FILE.open() as file:
            rows = list(csv.DictReader(file))
        listed = {NAMES.get(row["device"], row["device"].split()[0]) for row in rows}
        self.assertEqual(set(library) - listed, {"cpu", "GH200-144GB"})
        for row in rows:
            device = library[NAMES.get(row["device"], row["device"].split()[0])]
            parts = 2 if device["name"] in HALVES else 1
            with self.subTest(device["name"]):
                self.assertEqual(device["memory"], first(row["mem_gb"]) / parts * 2**30)
                self.assertEqual(device["memory_bandwidth"], first(row["mem_bw_gb_s"]) / parts * 1e9)
                for dtype, column in (("bfloat16", "bf16_dense_tflops"), ("float16", "fp16_dense_tflops")):
                    rate = first(row[column])
                    self.assertAlmostEqual(device["flops"].get(dtype, 0) / 1e12, (rate or 0) / parts)
                if first(row["best_matmul_efficiency"]):
                    self.assertEqual(device["efficiency"], first(row["best_matmul_efficiency"]))


if __name__ == "__main__":
    COMMAND = sys.argv.pop(1)
    unittest.main()
