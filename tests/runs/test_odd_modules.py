"""Odd modules beside plain PyTorch: equal after three steps, or refused with the sentence that their list says.

A share of `python bench/odd_modules.py`, which runs every module with every plan and every setting.
"""

import pytest
import torch
from odd import ODD
from odd.judge import PLANS, SETTINGS, Trial, as_expected, batches, doubles, made

import partita


@pytest.mark.parametrize("number,name", list(enumerate(ODD)), ids=list(ODD))
def test_equal_or_refused_by_name(number, name):
    trial, settings = Trial(name), list(SETTINGS)
    for place, plan in enumerate(PLANS):
        setting = settings[(number + place) % len(settings)]
        verdict = trial.verdict(plan, setting)
        assert as_expected(verdict, name, plan, setting), (name, plan, setting, verdict)


@pytest.mark.parametrize("name", ["SharedNegative", "StridedShared", "SharedGradient"])
def test_gradients_made_of_others_after_sums_in_float32(name):
    module = made(name).float()
    batch = {key: value.float() if value.is_floating_point() else value for key, value in batches()[0].items()}
    model = partita.capture(module, batch)
    plan = partita.recipe("zero1", model, ranks=2, microbatches=2, precision="bf16")
    assert partita.verify(model, plan, tolerance=0.1)["equal"]


def test_a_constant_that_forward_writes_to_is_left_as_it_was():
    with doubles():
        module = made("ConstantWritten")
        with pytest.raises(partita.InputError, match="register_buffer"):
            partita.capture(module, batches()[0])
        assert torch.equal(module.c, torch.ones_like(module.c))


def test_what_forward_keeps_for_looking_is_no_reason_to_refuse():
    with doubles():
        module = made("AppendsForLooking")
        partita.capture(module, batches()[0])
    assert module.seen == []
