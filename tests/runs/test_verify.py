"""partita.verify: right plans are equal however small a gradient is, and wrong ones differ."""

import json
import os
import subprocess

import pytest
import torch
from torch import nn

import partita
from partita.native import command


class Normed(nn.Module):
    """Batch norm takes the biases of its convolutions out again: their gradients are zero but for rounding."""

    def __init__(self, width=8):
        super().__init__()
        layers = [nn.Conv2d(3, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
        layers += [nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU()]
        self.body = nn.Sequential(*layers, nn.Conv2d(width, 5, 1))

    def forward(self, x, y):
        return nn.functional.cross_entropy(self.body(x), y, reduction="sum")


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    batch = {"x": torch.randn(8, 3, 8, 8), "y": torch.randint(0, 5, (8, 8, 8))}
    return partita.capture(Normed(), batch, loss=lambda output, batch: output)


@pytest.mark.parametrize("optimizer", ["adamw", "adam", "sgd"])
@pytest.mark.parametrize("recipe", ["dp", "tp", "zero3"])
def test_adam_of_gradients_that_are_zero_but_for_rounding(model, recipe, optimizer):
    plan = partita.recipe(recipe, model, ranks=2)
    plan = plan.with_data({**plan.data, "optimizer": {"name": optimizer, "lr": 1e-3}})
    found = partita.verify(model, plan, dtype="float64")
    assert found["equal"], found
    assert found["max_param_error"] < 1e-14, found


class Halves(nn.Module):
    """Backward of an assignment to a part makes a tensor without values, then fills it."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 4), nn.Linear(8, 4)

    def forward(self, x):
        whole = (x * 2).new_empty(x.shape[0], 8)
        whole[:, :4] = self.first(x)
        whole[:, 4:] = self.second(x)
        return whole.transpose(0, 1).contiguous().square().mean()


def test_a_loss_scale_does_not_look_at_memory_without_values(tmp_path):
    model = partita.capture(Halves(), {"x": torch.randn(4, 8)}, loss=lambda output, batch: output)
    assert any("new_empty" in op["target"] and op.get("backward") for op in model.ops)
    plan = partita.recipe("dp", model, ranks=2)
    plan.with_data({**plan.data, "precision": {"loss_scale": 1024.0}}).save(tmp_path / "plan.json")
    model.save(tmp_path / "step.model.json")
    done = subprocess.run([command(), "verify", "step.model.json", "plan.json", "--json"], cwd=tmp_path, capture_output=True,
                          text=True, env={**os.environ, "MALLOC_PERTURB_": "128"})  # fresh memory is 1e306 everywhere
    assert json.loads(done.stdout)["equal"], done.stdout + done.stderr
