"""partita.verify: right plans are equal however small a gradient is, and wrong ones differ."""

import pytest
import torch
from torch import nn

import partita


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
