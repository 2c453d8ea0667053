"""What capture does where a module looks at values, and what it says when it cannot go on."""

import functools
import re

import pytest
import torch
from torch import nn

import partita
from partita.capture import progress

X = torch.arange(6.0).reshape(2, 3) / 3


class Net(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.linear = nn.Linear(3, 3)
        self.body = body

    def forward(self, x):
        return self.body(self.linear(x), x)


def total(output, batch):
    return output.sum()


def same_as_eager(module, bake=False):
    model = partita.capture(module, (X,), total, bake=bake)
    got = model.run(module, (X,))
    loss = module(X).sum()
    loss.backward()
    assert got.loss == loss.item()
    for name, parameter in module.named_parameters():
        assert torch.equal(got.grads[name], parameter.grad), name
    return model


def masked(y):
    mask = torch.zeros(3, dtype=torch.bool)
    mask[1:] = True
    return y[:, mask]


CONSTANTS = {
    "branch": lambda y, x: y * 2 if torch.ones(3).any() else y,
    "item": lambda y, x: y * torch.tensor([1.5, 2.5]).max().item(),
    "written in place": lambda y, x: masked(y) * 2,
    "loop": lambda y, x: sum(y[i] for i in torch.tensor([1, 0, 1]).tolist()),
    "size": lambda y, x: y[:, : int(torch.tensor(7) // 3)],
    "masked_select": lambda y, x: y.masked_select(torch.tensor([True, False, True])),
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_values_of_constants_may_decide(name):
    same_as_eager(Net(CONSTANTS[name]))


BY_DATA = {
    "branch": lambda y, x: y if x.sum() > 0 else -y,
    "check": lambda y, x: y if (x >= 0).all() else None,
    "mask": lambda y, x: y[x > 0.5],
    "masked_select": lambda y, x: y.masked_select(x > 0.5),
}


@pytest.mark.parametrize("name", BY_DATA)
def test_values_of_the_batch_may_not_unless_they_are_baked_in(name):
    with pytest.raises(partita.InputError, match=rf"test_known.py:\d+ \(.*bake=True"):
        partita.capture(Net(BY_DATA[name]), (X,), total)
    with pytest.warns(UserWarning, match=r"root at test_known.py:\d+ .* keeps what this batch does"):
        model = same_as_eager(Net(BY_DATA[name]), bake=True)
    assert any(op["target"] == "aten.addmm.default" for op in model.ops)


def test_what_was_overwritten_by_data_is_no_constant():
    def body(y, x):
        flags = torch.zeros(3)
        flags[0] = x[0, 0]
        return y if flags.sum() > 0 else -y

    with pytest.raises(partita.InputError, match="depend on data"):
        partita.capture(Net(body), (X,), total)


def test_results_that_would_hold_values_of_the_batch_are_refused():
    with pytest.raises(partita.InputError, match="depends on data"):
        partita.capture(Net(lambda y, x: y.sum() * torch.unique(x).sum()), (X,), total, bake=True)


def test_an_error_of_the_module_is_told_with_its_line():
    with pytest.raises(partita.InputError) as caught:
        partita.capture(Net(lambda y, x: y @ x), (X,), total)
    assert re.search(r"RuntimeError at test_known.py:\d+ \(.*y @ x.*\) \(last op aten.mm.default\)", caught.value.what)
    assert caught.value.where == "root" and isinstance(caught.value.__cause__, RuntimeError)


def test_nothing_fake_stays_behind():
    @functools.lru_cache(maxsize=4)
    def table(size):
        return torch.linspace(0, 1, size)

    class Keeps(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 3)
            self.seen, self.last, self.calls = [], None, 0

        def forward(self, x):
            self.calls += 1
            self.last = self.linear(x) * table(3)
            self.seen.append(self.last)
            return self.last

    module = Keeps()
    partita.capture(module, (X,), total)
    assert module.calls == 0 and module.last is None and module.seen == []
    assert type(module(X)) is torch.Tensor


def test_a_buffer_that_is_assigned():
    class Mean(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 3)
            self.register_buffer("mean", torch.zeros(3))

        def forward(self, x):
            self.mean = 0.5 * self.mean + x.mean(0)
            return self.linear(x) - self.mean

    module = Mean()
    buffers = partita.capture(module, (X,), total).run(module, (X,)).buffers
    assert torch.equal(module.mean, torch.zeros(3)) and torch.equal(buffers["mean"], X.mean(0))


def test_progress(capsys, monkeypatch):
    monkeypatch.setattr(progress, "FIRST", 0.0)
    monkeypatch.setattr(progress, "EVERY", 0.0)
    partita.capture(Net(lambda y, x: y), (X,), total, progress=True)
    shown = capsys.readouterr().err
    assert re.search(r"capture: forward, \d+ ops, linear", shown) and "functional form" in shown
    assert shown.endswith("\r")
    partita.capture(Net(lambda y, x: y), (X,), total)
    assert capsys.readouterr().err == ""
