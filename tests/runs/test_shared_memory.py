"""Views of what a Step has, and arrays of numpy: edits through them count as in PyTorch, or are refused."""

import numpy
import pytest
import torch
from torch import nn

import partita

LOSS = nn.MSELoss()
DRAW = torch.Generator().manual_seed(1)
X, Y = torch.randn(8, 8, generator=DRAW, dtype=torch.float64), torch.randn(8, 4, generator=DRAW, dtype=torch.float64)


class Viewed(nn.Module):
    """Keeps views of its weight and of a buffer that forward changes, and reads neither."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.linear = nn.Linear(8, 4).double()
        self.register_buffer("mean", torch.zeros(8, dtype=torch.float64))
        self.views = {"mean": self.mean[:4], "row": self.linear.weight.detach()[1]}

    def forward(self, x):
        out = self.linear(x + self.mean)
        self.mean.mul_(0.5).add_(x.mean(0))
        return out


class InAnArray(Viewed):
    def __init__(self):
        super().__init__()
        self.array = numpy.zeros(8)
        self.mean = torch.from_numpy(self.array)


def optimizer_of(module):
    return torch.optim.SGD(module.parameters(), 0.1, momentum=0.9)


def started(module):
    return partita.parallelize(module, (X, Y), optimizer_of(module), ranks=2, loss=LOSS)


def eager_step(module, optimizer):
    optimizer.zero_grad()
    LOSS(module(X), Y).backward()
    optimizer.step()


@pytest.mark.parametrize("which", ["mean", "row"])
def test_edits_through_a_view_after_the_module_was_given_back(which):
    module, other = Viewed(), Viewed()
    optimizer, step = optimizer_of(module), started(other)
    for _ in range(3):
        eager_step(module, optimizer)
        step(X, Y)
        torch.testing.assert_close(step.module().views[which], module.views[which], rtol=1e-9, atol=1e-9)
        module.views[which].add_(1)
        other.views[which].add_(1)
    eager_step(module, optimizer)
    step(X, Y)
    torch.testing.assert_close(step.module().state_dict(), module.state_dict(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("which,name", [("mean", "mean"), ("row", "linear.weight")])
def test_an_edit_through_a_view_while_ranks_have_the_tensor_is_refused(which, name):
    module = Viewed()
    step = started(module)
    step(X, Y)
    module.views[which].add_(1)
    with pytest.raises(partita.InputError, match=f"a view of {name} was changed.*call step.module.. first"):
        step(X, Y)


def test_memory_that_nobody_else_holds_is_let_go():
    module = nn.Sequential(nn.Linear(8, 8), nn.LSTM(8, 4)).double()
    step = partita.parallelize(module, (X, Y), optimizer_of(module), ranks=2, loss=lambda out, batch: LOSS(out[0], batch[1]))
    assert not step._taken.held
    step(X, Y)
    step.module()
    step(X, Y)
    assert not step._taken.held


def test_an_array_in_the_memory_of_a_buffer_is_refused():
    with pytest.raises(partita.InputError, match=r"^array: it is an array in the memory of mean.*clone\(\)"):
        partita.capture(InAnArray(), (X, Y), LOSS)


def test_a_saved_state_is_a_copy():
    module = Viewed()
    step = started(module)
    saved = step.state_dict()["model"]
    before = {name: value.clone() for name, value in saved.items()}
    step(X, Y)
    step.module()
    torch.testing.assert_close(saved, before, rtol=0, atol=0)
