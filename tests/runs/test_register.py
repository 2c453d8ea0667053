"""partita.register: rows for ops of one's own."""

import json
import subprocess

import pytest
import torch
from torch import nn

import partita
from partita import register
from partita.native import command


@torch.library.custom_op("partita_test::scale", mutates_args=())
def scale(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return x * weight


@torch.library.custom_op("partita_test::scale_backward", mutates_args=())
def scale_backward(grad: torch.Tensor, x: torch.Tensor, weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return grad * weight, (grad * x).sum((0, 1))


scale.register_fake(lambda x, weight: torch.empty_like(x))
scale_backward.register_fake(lambda grad, x, weight: (torch.empty_like(x), torch.empty_like(weight)))
scale.register_autograd(lambda ctx, grad: scale_backward(grad, *ctx.saved_tensors),
                        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs))

FORWARD, BACKWARD = "b s h, h -> b s h", "b s h, b s h, h -> b s h, h"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.weight, self.second = nn.Linear(6, 8), nn.Parameter(torch.rand(8)), nn.Linear(8, 4)

    def forward(self, x, target):
        return nn.functional.mse_loss(self.second(scale(self.first(x), self.weight)), target)


@pytest.fixture(autouse=True)
def only_these_rows(monkeypatch):
    monkeypatch.setitem(register.__globals__, "_axes", {})


def case():
    torch.manual_seed(0)
    return Net(), {"x": torch.randn(4, 3, 6), "target": torch.randn(4, 3, 4)}


def captured():
    module, batch = case()
    return module, batch, partita.capture(module, batch, lambda output, batch: output, infer=False)


def register_both():
    partita.register("partita_test::scale", FORWARD)
    partita.register("partita_test::scale_backward", BACKWARD)


def test_without_a_row_it_is_opaque_and_runs():
    module, batch, model = captured()
    assert [op["target"] for op in model.opaque_ops] == ["partita_test.scale.default",
                                                         "partita_test.scale_backward.default"]
    got = model.run(module, batch)
    loss = module(**batch)
    loss.backward()
    assert got.loss == loss.item() and torch.equal(got.grads["weight"], module.weight.grad)


@pytest.mark.parametrize("plan", ["dp", "tp"])
def test_with_a_row_it_is_split(plan):
    register_both()
    module, batch, model = captured()
    assert model.opaque_ops == []
    whole = model.run(module, batch)
    step = partita.parallelize(module, batch, torch.optim.SGD(module.parameters(), 0.1),
                               plan=partita.recipe(plan, model, ranks=2), loss=lambda output, batch: output)
    assert step(batch) == pytest.approx(whole.loss, rel=1e-6)
    module, _ = case()
    trained = step.module().weight
    assert torch.allclose(trained, module.weight - 0.1 * whole.grads["weight"], rtol=1e-5)


class Scaled(nn.Module):
    """Values scaled by a norm of all samples: its samples do not stand for themselves."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(6, 8), nn.Linear(8, 4)

    def forward(self, x, target):
        scaled = torch.renorm(x.detach(), 2, 2, 1.0)
        return nn.functional.mse_loss(self.second(self.first(x) * scaled[..., :1]), target)


@pytest.mark.parametrize("axes, wrong", [("b s h -> b s h", "root/renorm"), ("!b !s h -> !b !s h", None)])
def test_verify_names_the_op_whose_row_is_wrong(axes, wrong):
    partita.register("aten::renorm", axes)
    torch.manual_seed(0)
    model = partita.capture(Scaled(), case()[1], lambda output, batch: output)
    answer = partita.verify(model, partita.recipe("dp", model, ranks=2), dtype="float64")
    assert (answer["equal"], answer["first_wrong_op"]) == (wrong is None, wrong)
    assert wrong is None or answer["first_wrong"]["ranks"] == [0, 1]


def test_a_file_of_rows(tmp_path):
    path = tmp_path / "rows.json"
    path.write_text(json.dumps({"partita_test::scale": FORWARD, "partita_test::scale_backward": BACKWARD}))
    partita.register(str(path))
    model = captured()[2]
    assert {op["axes"] for op in model.ops if "axes" in op} == {FORWARD, BACKWARD}


@pytest.mark.parametrize("axes, what", [
    ("b s, h -> b s h", "has 2 letters for input 0, which has 3 dimensions"),
    ("b s h -> b s h", "has letters for 1 inputs, the op has 2"),
    ("b s h, s -> b s h", "uses s for dimensions of size 3 and 8"),
    ("b s h, ! -> b s h", "has a ! without a letter"),
])
def test_a_row_that_does_not_fit_is_named(axes, what):
    partita.register("partita_test::scale", axes)
    module, batch, model = captured()
    with pytest.raises(partita.InputError, match=f"root/scale.*{what}"):
        model.run(module, batch)


@pytest.mark.parametrize("call, what", [
    (lambda: partita.register("scale", FORWARD), "not the name of an op"),
    (lambda: partita.register("partita_test::scale", "b s h"), "with an arrow"),
    (lambda: partita.register("aten::mm", "m k, k n -> m n"), "has a row"),
    (lambda: partita.register("missing.json"), "no file of rows"),
])
def test_wrong_uses_end_with_a_sentence(call, what):
    with pytest.raises(partita.InputError, match=what):
        call()


def test_a_sum_that_one_of_the_results_holds_is_split(tmp_path):
    register_both()
    model = captured()[2]
    plan = partita.recipe("dp", model, ranks=2)
    assert partita.verify(model, plan, dtype="float64")["equal"]
    model.save(tmp_path / "net.model.json")
    plan.save(tmp_path / "plan.json")
    told = subprocess.run([command(), "lower", tmp_path / "net.model.json", tmp_path / "plan.json", "--json"],
                          check=True, capture_output=True)
    trained = sum(p.numel() for p in case()[0].parameters())
    assert json.loads(told.stdout)["bytes_sent"] == 2 * 4 * (trained + 1)  # the sums of the gradients and of the loss
