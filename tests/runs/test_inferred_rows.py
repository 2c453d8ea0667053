"""Rows by experiment: what is claimed, what is not, and what is said of it."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import partita
from partita.capture import aside, experiment
from partita.capture.aside import answers
from partita.capture.call import call_of
from partita.native import command

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench"))

from inferred_rows import finds_batch, hidden_call, liar_call
from known_calls import CALLS
from liars import LIARS


@torch.library.custom_op("partita_inferred::swish", mutates_args=())
def swish(x: torch.Tensor, sharpness: float) -> torch.Tensor:
    return x * torch.sigmoid(sharpness * x)


@torch.library.custom_op("partita_inferred::swish_backward", mutates_args=())
def swish_backward(grad: torch.Tensor, x: torch.Tensor, sharpness: float) -> torch.Tensor:
    s = torch.sigmoid(sharpness * x)
    return grad * (s + sharpness * x * s * (1 - s))


@torch.library.custom_op("partita_inferred::centred", mutates_args=())
def centred(x: torch.Tensor) -> torch.Tensor:
    return x - x.mean(0, keepdim=True)


def _remember(ctx, inputs, output):
    ctx.save_for_backward(inputs[0])
    ctx.sharpness = inputs[1]


swish.register_fake(lambda x, sharpness: torch.empty_like(x))
swish_backward.register_fake(lambda grad, x, sharpness: torch.empty_like(x))
centred.register_fake(lambda x: torch.empty_like(x))
swish.register_autograd(lambda ctx, grad: (swish_backward(grad, *ctx.saved_tensors, ctx.sharpness), None),
                        setup_context=_remember)
SWISHES = ["partita_inferred.swish.default", "partita_inferred.swish_backward.default"]


class Net(nn.Module):
    def __init__(self, detached=None):
        super().__init__()
        self.first, self.second, self.detached = nn.Linear(6, 8), nn.Linear(8, 4), detached

    def forward(self, x, target):
        hidden = swish(self.first(x), 1.5)
        if self.detached:
            hidden = hidden * self.detached(hidden.detach())
        return nn.functional.mse_loss(self.second(hidden), target)


def captured(detached=None, **options):
    torch.manual_seed(0)
    batch = {"x": torch.randn(4, 3, 6), "target": torch.randn(4, 3, 4)}
    return partita.capture(Net(detached), batch, lambda output, batch: output, **options)


def run(*words, code=0):
    done = subprocess.run([str(command()), *map(str, words)], capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "net.model.json"
    captured().save(path)
    return path


def planned(path, *flags):
    plan = path.with_name("plan.json")
    run("recipe", "dp", path, "--ranks", 2, "-o", plan, *flags)
    return plan


def test_an_op_without_a_row_gets_one():
    model = captured()
    assert [op["target"] for op in model.inferred_ops] == SWISHES and model.opaque_ops == []
    assert [op["axes"] for op in model.inferred_ops] == ["b c d -> b c d", "b c d, b c d -> b c d"]


def test_without_experiments_it_is_opaque():
    model = captured(infer=False)
    assert [op["target"] for op in model.opaque_ops] == SWISHES and model.inferred_ops == []


def test_a_registered_row_counts_before_experiments(monkeypatch):
    monkeypatch.setitem(partita.register.__globals__, "_axes", {})
    partita.register("partita_inferred::swish", "b s h -> b s h")
    model = captured()
    assert [op["target"] for op in model.inferred_ops] == SWISHES[1:]
    assert next(op for op in model.ops if op["target"] == SWISHES[0])["axes"] == "b s h -> b s h"


def test_it_is_split_certified_under_an_assumption_and_right(saved):
    plan = planned(saved)
    lowered = json.loads(run("lower", saved, plan, "--json"))
    assert lowered["certified"] and lowered["certified_assuming"] == SWISHES
    assert f"certified_assuming: [{', '.join(SWISHES)}]" in run("lower", saved, plan)
    answer = partita.verify(captured(), partita.Plan.load(plan), dtype="float64")
    assert answer["equal"] and answer["certified_assuming"] == SWISHES


def test_without_inferred_rows_it_is_whole(saved):
    plan = planned(saved, "--no-inferred-rows")
    for flags in ([], ["--no-inferred-rows"]):  # a plan made without them says so
        assert json.loads(run("lower", saved, plan, "--json", *flags))["certified_assuming"] == []
    model = captured()
    assert partita.verify(model, partita.Plan.load(plan), dtype="float64", no_inferred_rows=True)["equal"]
    best = partita.plan(model, cluster="2xcpu", allow="dp", no_inferred_rows=True)
    assert best.data["model"] == json.loads(plan.read_text())["model"]


def test_a_plan_made_with_inferred_rows_needs_them(saved):
    said = run("lower", saved, planned(saved), "--no-inferred-rows", code=2)
    assert "this plan was made with the rows inferred for partita_inferred.swish.default" in said


def test_an_op_that_runs_whole_assumes_nothing(saved):
    plan = saved.with_name("one.json")
    run("recipe", "dp", saved, "--ranks", 1, "-o", plan)
    assert json.loads(run("lower", saved, plan, "--json"))["certified_assuming"] == []


def test_profile_shows_them(saved):
    profile = json.loads(run("profile", saved, "--json"))
    assert (profile["opaque_ops"], profile["inferred_ops"]) == (0, 2)
    assert profile["inferred_targets"] == dict.fromkeys(SWISHES, 1)
    assert "1 x partita_inferred.swish.default has an inferred row, which is an assumption" in run("profile", saved)
    assert json.loads(run("profile", saved, "--json", "--no-inferred-rows"))["opaque_ops"] == 2


def test_training_with_them_is_training_without():
    torch.manual_seed(0)
    module, batch = Net(), {"x": torch.randn(4, 3, 6), "target": torch.randn(4, 3, 4)}
    expected = module(**batch)
    expected.backward()
    wanted = module.first.weight.detach() - 0.1 * module.first.weight.grad
    module.zero_grad()
    step = partita.parallelize(module, batch, torch.optim.SGD(module.parameters(), 0.1), loss=lambda output, batch: output,
                               plan=partita.recipe("dp", captured(), ranks=2))
    assert step(batch) == pytest.approx(expected.item(), rel=1e-6)
    assert torch.allclose(step.module().first.weight, wanted, rtol=1e-5, atol=1e-7)


def test_an_op_that_mixes_samples_is_not_claimed_and_stays_right():
    model = captured(centred)
    assert [op["target"] for op in model.opaque_ops] == ["partita_inferred.centred.default"]
    assert partita.verify(model, partita.recipe("dp", model, ranks=2), dtype="float64")["equal"]


def test_verify_looks_at_inferred_rows_first(tmp_path):
    """A row that lies, marked as inferred: no experiment claims it, so it is written by hand."""
    model = captured(centred)
    lie = next(op for op in model.ops if op["target"] == "partita_inferred.centred.default")
    lie |= {"axes": "b c d -> b c d", "inferred": True}
    path, plan = tmp_path / "lie.model.json", tmp_path / "plan.json"
    model.save(path)
    run("recipe", "dp", path, "--ranks", 2, "-o", plan)
    answer = partita.verify(model, partita.Plan.load(plan), dtype="float64")
    assert not answer["equal"] and answer["first_wrong"]["target"] == lie["target"] and answer["first_wrong"]["inferred"]
    assert answer["certified_assuming"] == sorted([lie["target"], *SWISHES])


def test_the_same_bytes_in_another_process():
    script = "import sys; sys.path.insert(0, sys.argv[1]); import test_inferred_rows as t; print(t.captured().to_json())"
    made = [subprocess.run([sys.executable, "-c", script, str(Path(__file__).parent)], stdout=subprocess.PIPE, text=True,
                           check=True, env={**os.environ, "PYTHONHASHSEED": str(seed)}).stdout for seed in (1, 2)]
    assert made[0] == made[1] == captured().to_json() + "\n"


def test_capture_leaves_no_trace_of_experiments():
    calls = []
    library = torch.library.Library("partita_inferred", "FRAGMENT")
    library.define("counted(Tensor x) -> Tensor")
    library.impl("counted", lambda x: calls.append(1) or x.exp(), "CPU")
    state = torch.random.get_rng_state()
    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    assert experiment.infer_rows([call_of(torch.ops.partita_inferred.counted.default, (x,), {}, x)]) == ["b c -> b c"]
    assert calls == [] and torch.equal(torch.random.get_rng_state(), state)


def test_an_op_that_ends_its_process_is_not_claimed():
    library = torch.library.Library("partita_inferred", "FRAGMENT")
    library.define("breaks(Tensor x) -> Tensor")
    library.impl("breaks", lambda x: os.abort(), "CPU")
    library.define("raises(Tensor x) -> Tensor")
    library.impl("raises", lambda x: x.missing, "CPU")
    x, ops = torch.randn(4, 3), torch.ops.partita_inferred
    calls = [call_of(op, (x,), {}, x) for op in (ops.breaks.default, ops.raises.default, torch.ops.aten.exp2.default)]
    assert experiment.infer_rows(calls) == [None, None, "b c -> b c"]


def test_an_op_that_hangs_is_not_claimed(monkeypatch):
    monkeypatch.setattr(aside, "SECONDS", 1)
    assert answers(["quick", "hangs", "quick"], lambda task: task if task == "quick" else __import__("time").sleep(60)) == \
        ["quick", None, "quick"]


@pytest.mark.parametrize("op, args", [
    ("aten::as_strided", lambda: (torch.randn(4, 3), [4, 3], [3, 1])),  # no row on purpose
    ("aten::bernoulli", lambda: (torch.rand(4, 3),)),                    # random
    ("aten::nonzero", lambda: (torch.rand(4, 3),)),                      # its size depends on values
    ("aten::diagonal", lambda: (torch.rand(4, 3, 3), 0, 1, 2)),          # a view
    ("aten::fft_rfft", lambda: (torch.rand(4, 3),)),                     # complex numbers
])
def test_what_is_never_tried(op, args):
    overload, args = getattr(torch.ops.aten, op.split("::")[1]).default, args()
    assert not experiment.may_be_tried(call_of(overload, args, {}, overload(*args)))


@pytest.mark.parametrize("op, args, row", [
    ("renorm", lambda: (torch.randn(4, 3, 5), 2, 0, 1.0), "b !z1 !z2 -> b !z3 !z4"),   # the norm of all but dimension 0
    ("cdist", lambda: (torch.randn(4, 3, 5), torch.randn(4, 6, 5)), "b c !z1, b d !z2 -> b c d"),
    ("logcumsumexp", lambda: (torch.randn(4, 3), 0), None),                            # runs over the batch
    ("logcumsumexp", lambda: (torch.randn(4, 3), 1), "b !z1 -> b !z2"),
    ("dot", lambda: (torch.randn(4), torch.randn(4)), None),                           # nothing but a sum
])
def test_letters(op, args, row):
    args, overload = args(), getattr(torch.ops.aten, op).default
    assert experiment.infer_rows([call_of(overload, args, {}, overload(*args))]) == [row]


def test_hidden_rows_are_found():
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    chosen = random.Random(seed).sample(CALLS, 12)
    rows = experiment.infer_rows([hidden_call(op, arguments, seed) for op, arguments in chosen])
    missed = [str(op) for (op, _), row in zip(chosen, rows) if not finds_batch(row)]
    assert len(missed) <= 2, f"seed {seed}: {missed}"


def test_no_liar_is_claimed():
    rows = experiment.infer_rows([liar_call(name) for name in LIARS])
    assert len(LIARS) >= 12 and {name: row for name, row in zip(LIARS, rows) if row is not None} == {}
