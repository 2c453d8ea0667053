"""A share of the zoo from module to trained parameters, beside eager PyTorch.

The whole of it: python tests/parity/end_to_end_table.py
"""

import math

import pytest
import torch

import end_to_end
import end_to_end_table
from end_to_end import Row, relative_errors
from zoo import KINDS, ZOO

SHARE = [("mlp", 2, 35), ("lstm", 4, 60), ("convnet", 4, 60), ("gpt2, LoRA", 3, 60), ("bloom", 3, 60), ("fnet", 4, 60),
         ("u-net, bilinear", 8, 35), ("factorisation machine", 2, 60)]


@pytest.mark.parametrize("name, ranks, percent", SHARE)
def test_trains_as_eager_does(name, ranks, percent):
    row = end_to_end.only(name, ranks, percent)
    assert row.outcome == "equal", row.reason
    assert 0 < row.peak <= row.limit


def test_a_wrong_gradient_fails_its_row(monkeypatch):
    library = end_to_end.partita.native.library()
    gradients = library.Session.gradients
    monkeypatch.setattr(library.Session, "gradients", lambda session: {n: g * (1 + 1e-8) for n, g in gradients(session).items()})
    row = end_to_end.only("mlp", 2, 60)
    assert row.outcome == "failed" and "gradient" in row.reason


def test_errors_are_relative_to_the_tensor_unless_it_is_zero_but_for_rounding():
    want = {"large": torch.tensor([2.0, -4.0]), "noise": torch.tensor([1e-17]), "gone": torch.tensor([math.nan])}
    got = {"large": torch.tensor([2.0, -4.4]), "noise": torch.tensor([-1e-17]), "gone": torch.tensor([1.0])}
    errors = relative_errors(got, want)
    assert errors["large"] == pytest.approx(0.1) and errors["noise"] < 1e-12 and errors["gone"] == math.inf


def test_the_draw_is_the_same_everywhere_and_spreads_over_kinds():
    grid = end_to_end_table.on_the_grid()
    assert len(grid) == 24 and all(any(case.name in grid for case in cases) for cases in KINDS.values())
    assert end_to_end_table.drawn("gpt2") == 2562356562769814778
    drawn = {end_to_end_table.pairs_of(name)[0] for name in ZOO if name not in grid}
    assert len(drawn) == 8


def test_a_page_names_what_failed():
    rows = [Row("a", 2, 60, outcome="failed", reason="one | two"), Row("b", 2, 35, outcome="refused", reason="no")]
    assert "FAILED: one / two" in end_to_end_table.page(rows, 1) and end_to_end_table.wrong(rows)
    assert end_to_end_table.wrong(rows[1:])
