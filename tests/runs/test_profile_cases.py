"""Rows of tests/data/profile_cases.csv that one device's step can answer are answered from the graph.

The whole of it, with the nets that take long to capture: python tests/parity/profile_cases.py
"""

import pytest

from conftest import ROOT
from published.cases import REASONS, Profiler, holds, is_quick, rows

ROWS = rows()
QUICK = [row for row in ROWS if row["id"] not in REASONS and is_quick(row)]


@pytest.fixture(scope="module")
def profiler():
    return Profiler(ROOT / "build/full/bin/partita")


@pytest.mark.parametrize("row", QUICK, ids=lambda row: f"row{row['id']}")
def test_answered_from_the_graph(profiler, row):
    value, off, right = holds(profiler, row)
    assert right, f"{value}: {off}"


def test_every_other_row_has_its_reason():
    assert REASONS.keys() <= {row["id"] for row in ROWS}
