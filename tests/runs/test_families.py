"""Models of other families, planned and run on two ranks, equal one device (the whole table: docs/families.md)."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("families_table", ROOT / "tests" / "parity" / "families_table.py")
families = importlib.util.module_from_spec(spec)
spec.loader.exec_module(families)


@pytest.mark.parametrize("name", families.MODELS)
def test_every_plan_equals_one_device(name):
    rows, wrong = families.table(str(ROOT / "build" / "bin" / "partita"), [name])
    assert not wrong, rows
