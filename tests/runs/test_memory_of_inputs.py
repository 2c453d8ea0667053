"""What lies in whose memory: ops that name places in memory, entries of a batch that share it, batches laid out otherwise."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import partita
from partita.errors import InputError


class Strided(nn.Module):
    """Every other column of a view of an activation, by its place in memory."""

    def __init__(self, dense):
        super().__init__()
        self.a, self.b, self.dense = nn.Linear(6, 8), nn.Linear(1, 1), dense

    def forward(self, x, y):
        h = self.a(x)
        h = h[:, 4:].contiguous() if self.dense else h[:, 4:]
        column = h.as_strided((x.shape[0], 1), (4 if self.dense else 8, 1), 0 if self.dense else 4)
        return F.mse_loss(self.b(column), y)


def batch(seed=0):
    torch.manual_seed(seed)
    return {"x": torch.randn(4, 6, dtype=torch.float64), "y": torch.randn(4, 1, dtype=torch.float64)}


def test_as_strided_of_a_view_of_more_is_refused():
    with pytest.raises(InputError, match="as_strided reads a tensor that is a part of what lies in its memory"):
        partita.capture(Strided(False).double(), batch())


def test_as_strided_of_all_of_its_memory_is_followed():
    torch.manual_seed(1)
    module, plain = Strided(True).double(), Strided(True).double()
    plain.load_state_dict(module.state_dict())
    model = partita.capture(module, batch())
    step = partita.parallelize(module, batch(), optimizer=torch.optim.SGD(module.parameters(), 0.1),
                               plan=partita.recipe("dp", model, ranks=2, optimizer="sgd"))
    optimizer = torch.optim.SGD(plain.parameters(), 0.1)
    for seed in range(3):
        loss = plain(**batch(seed))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        assert step(batch(seed)) == pytest.approx(loss.item(), rel=1e-12)


def test_a_parameter_that_is_a_view_of_more_is_not_read_by_its_places():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nn.Parameter(torch.randn(6, 8, dtype=torch.float64)[:, :4])

        def forward(self, x, y):
            return F.mse_loss(x @ self.w.as_strided((6, 1), (8, 1)), y)

    with pytest.raises(InputError, match="as_strided"):
        partita.capture(Net(), batch())


class Masks(nn.Module):
    """Changes its input in place."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 3).double()

    def forward(self, x, y):
        x[:, 0] = 0
        return F.mse_loss(self.a(x), y)


def test_entries_of_a_batch_that_share_memory_are_refused_where_forward_changes_one():
    long = torch.randn(4, 4, dtype=torch.float64)
    with pytest.raises(InputError, match="batch y: it lies in the memory of x, which forward changes in place"):
        partita.capture(Masks(), {"x": long[:, :-1], "y": long[:, 1:]})
    apart = {"x": long[:, :-1].clone(), "y": long[:, 1:].clone()}
    module = Masks()
    step = partita.parallelize(module, apart, optimizer=torch.optim.SGD(module.parameters(), 0.1), cluster="1xcpu")
    with pytest.raises(InputError, match="batch y: it lies in the memory of x"):
        step({"x": apart["x"], "y": apart["x"]})


def test_a_batch_that_lies_otherwise_is_captured_anew():
    class Asks(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(4, 4).double()

        def forward(self, x):
            return (self.a(x) * (1.0 if x.is_contiguous() else 3.0)).pow(2).mean()

    module, plain = Asks(), Asks()
    plain.load_state_dict(module.state_dict())
    x = torch.randn(4, 4, dtype=torch.float64)
    step = partita.parallelize(module, {"x": x}, optimizer=torch.optim.SGD(module.parameters(), 0.1), cluster="1xcpu")
    optimizer = torch.optim.SGD(plain.parameters(), 0.1)
    for one in (x, x.t(), x):
        loss = plain(one)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        assert step({"x": one}) == pytest.approx(loss.item(), rel=1e-12)


NUMBERS = [{"momentum": 0.0, "weight_decay": 0.0, "nesterov": False}, {"dampening": 0.3}, {"momentum": 0.0}]


@pytest.mark.parametrize("numbers", NUMBERS, ids=str)
def test_verify_takes_the_numbers_of_a_group_as_they_are(numbers):
    module = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)).double()
    model = partita.capture(module, (torch.randn(4, 4, dtype=torch.float64), torch.randn(4, 4, dtype=torch.float64)), nn.MSELoss())
    plan = partita.recipe("dp", model, ranks=2, optimizer="sgd")
    plan.data["optimizer"] |= {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1, "dampening": 0.0, "nesterov": True,
                               "groups": [{"params": ["0.*"], **numbers}]}
    answer = partita.verify(model, plan)
    assert answer["equal"], answer


def test_verify_of_numbers_with_which_torch_would_not_begin():
    """A group of torch's may have them, so a plan may."""
    module = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)).double()
    model = partita.capture(module, (torch.randn(4, 4, dtype=torch.float64), torch.randn(4, 4, dtype=torch.float64)), nn.MSELoss())
    plan = partita.recipe("dp", model, ranks=2, optimizer="sgd")
    plan.data["optimizer"] |= {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "nesterov": True}
    assert partita.verify(model, plan)["equal"]
