"""Plans by hand, and the examples of examples/designs: each runs and is equal to one device."""

import re
import sys
from pathlib import Path

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

import partita

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "designs"
sys.path.insert(0, str(EXAMPLES))


@pytest.fixture(scope="module")
def gpt():
    config = GPT2Config(n_layer=4, n_embd=32, n_head=4, vocab_size=64, n_positions=16, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)
    ids = torch.randint(0, 64, (8, 16))
    return partita.capture(GPT2LMHeadModel(config), {"input_ids": ids, "labels": ids})


class Recycling(torch.nn.Module):
    """Four layers, three times through the same weights, the first two without gradients."""

    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList(torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.Linear(32, 16))
                                          for _ in range(4))

    def forward(self, x):
        before = torch.zeros_like(x)
        for step in range(3):
            with torch.set_grad_enabled(step == 2):
                state = x + before
                for block in self.blocks:
                    state = state + block(state)
                before = state
        return before.square().mean()


def holds(model, plan):
    answer = partita.verify(model, plan, dtype="float64")
    assert answer["equal"], answer
    assert answer["measured_peak_bytes"] == answer["predicted_peak_bytes"]
    return answer


def test_megatron_in_three_calls(gpt):
    plan = partita.design(gpt, ranks=4).split("*", "batch", 2).split("h.*.attn", "heads", 2).split("h.*.mlp", "hidden", 2).plan()
    replicated = partita.recipe("dp", gpt, ranks=2)
    assert max(holds(gpt, plan)["measured_peak_bytes"]) < max(holds(gpt, replicated)["measured_peak_bytes"])


def test_assign_store_and_order_by_hand(gpt):
    design = partita.design(gpt, ranks=4).split("*", "batch", 2).store("*", "parameter").microbatches(2)
    for ops, devices in zip(design.cut(2), ([0, 1], [2, 3])):
        design.assign(ops, devices)
    holds(gpt, design.order(["0F0,0F1,0B1,0B0", "1F0,1F1,1B1,1B0"]).plan())


def test_coshard(gpt):
    from coshard import coshard

    whole = partita.recipe("dp", gpt, ranks=1, recompute=None)
    assert max(holds(gpt, coshard(gpt, layers=4, pieces=4))["measured_peak_bytes"]) < max(holds(gpt, whole)["measured_peak_bytes"])


def test_three_f_one_b():
    from three_f_one_b import three_f_one_b

    model = partita.capture(Recycling(), (torch.randn(8, 4, 16),))
    holds(model, three_f_one_b(model, devices=2, microbatches=4))


def test_lean_v(gpt):
    from lean_v import lean_v

    plan = lean_v(gpt, devices=2, microbatches=4, pieces=4)
    holds(gpt, plan)
    assert plan.schedule().startswith("device 0") and "+" in plan.schedule()


def test_every_example_is_short():
    for path in EXAMPLES.glob("*.py"):
        assert len(path.read_text().splitlines()) < 30, path.name


@pytest.mark.parametrize("wrong, says", [
    (lambda d: d.split("h.*.atn", "heads", 2), 'no module or op of this model is called "h.*.atn"'),
    (lambda d: d.split("h.*.mlp", "heads", 2), 'nothing called "heads" can be split there'),
    (lambda d: d.split("h.*.mlp", "hidden", 2).split("h.*.attn", "heads", 4), "axis tp has 2 devices already, not 4"),
    (lambda d: d.split("*", "batch", 4).plan(), "its splits use 4 devices, it was made for 2 ranks"),
    (lambda d: d.assign("*", [0]).plan(), "its stages use 1 devices, it was made for 2 ranks"),
])
def test_mistakes_are_named(gpt, wrong, says):
    with pytest.raises(partita.InputError, match=re.escape(says)):
        wrong(partita.design(gpt, ranks=2))
