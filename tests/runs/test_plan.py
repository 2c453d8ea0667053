"""partita.plan: the best plan fits, and trains what one device trains."""

import json

import pytest
import torch

import partita
from test_capture import gpt2, token_batch
from test_parallelize import OPTIMIZERS, assert_same_training, batch_of


def test_the_best_plan_fits_and_trains(tmp_path):
    torch.manual_seed(0)
    module, batch = gpt2(), batch_of(4)
    model = partita.capture(module, batch)
    loose = partita.plan(model, cluster="2xcpu")
    limit = max(partita.plan(model, cluster="2xcpu", allow="dp").peak_bytes) - 1
    tight = partita.plan(model, cluster="2xcpu", memory=limit)
    assert max(tight.peak_bytes) <= limit and tight.step_seconds >= loose.step_seconds
    assert any(lost["summary"] == "dp2" for lost in tight.lost)
    assert tight.summary() in tight.ranking() and "dp2" in tight.ranking() and tight.schedule()
    tight.save(tmp_path / "plan.json")
    saved = partita.Plan.load(tmp_path / "plan.json")
    step, _ = assert_same_training(module, batch, saved, OPTIMIZERS["adamw"], 1e-5)
    assert max(step.peak_bytes()) <= limit


def test_plans_by_what_was_measured(tmp_path):
    sample = {"op": "x", "target": "aten.mm.default", "layout": 0, "flops": 1e6, "moved": 1000, "seconds": 1e-3,
              "workspace": 0, "retained": 0}
    here = {"format": "partita.calibration", "version": 1, "machine": "a test", "threads": 1, "cores": 2,
            "expected_error": 0.04, "samples": [sample], "transfers": []}
    (tmp_path / "here.json").write_text(json.dumps(here))
    model = partita.capture(gpt2(), batch_of(4))
    guessed = partita.plan(model, cluster="2xcpu")
    measured = partita.plan(model, cluster="2xcpu", calibration=tmp_path / "here.json")
    assert (guessed.tier, measured.tier, measured.expected_error) == ("spec sheet", "calibrated", 0.04)
    assert measured.step_seconds > 10 * guessed.step_seconds


def test_nothing_fits():
    model = partita.capture(gpt2(), token_batch())
    with pytest.raises(partita.Infeasible, match="least"):
        partita.plan(model, cluster="2xcpu", memory="64KiB")


def test_an_unknown_cluster():
    with pytest.raises(partita.InputError, match="cpi"):
        partita.plan(partita.capture(gpt2(), token_batch()), cluster="2xcpi")


def test_parallelize_plans_by_itself():
    module, batch = gpt2(), batch_of(4)
    step = partita.parallelize(module, batch, OPTIMIZERS["adamw"](module.parameters()), ranks=2)
    first = step(batch)
    assert len(step.peak_bytes()) == 2 and step(batch) < first
