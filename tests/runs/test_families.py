"""Models of other families, planned and run on two ranks, equal one device.

The whole of it, docs/evidence/families.md: python tests/parity/families_table.py build/bin/partita
"""

import collections
import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("families_table", ROOT / "tests" / "parity" / "families_table.py")
families = importlib.util.module_from_spec(spec)
spec.loader.exec_module(families)


SHARE = ["Phi-3 (qkv of unequal parts)", "Mixtral (4 experts)", "ResNet (BatchNorm)", "T5",
         "DeBERTa (positions through the weights)"]


@pytest.mark.parametrize("name", SHARE)
def test_every_plan_equals_one_device(name):
    rows, wrong = families.table(str(ROOT / "build" / "bin" / "partita"), [name])
    assert not wrong, rows


def test_unequal_parts_of_a_fused_projection_are_split_at_the_price_of_sums(tmp_path):
    command = str(ROOT / "build" / "bin" / "partita")
    file = families.file_of("Phi-3 (qkv of unequal parts)", tmp_path)
    plan, program = str(tmp_path / "plan.json"), tmp_path / "program.json"
    families.partita_says(command, "recipe", "tp", file, "--ranks", "2", "-o", plan)
    families.partita_says(command, "lower", file, plan, "-o", str(program))
    bodies = json.loads(program.read_text())["bodies"]
    moves = collections.Counter(instr["do"] for body in bodies for instr in body["instrs"])
    for local in ("compute", "move", "optimize", "zeros", "add"):
        del moves[local]
    assert moves == {"all_reduce": 8}  # attention and mlp, forward and backward, in two layers
