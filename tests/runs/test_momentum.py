"""Momentum buffers of SGD that begin at different times: as in PyTorch, or refused by name."""

import pytest
import torch
from torch import nn

import partita

LOSS = nn.MSELoss()


def made(momentum, dampening):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 4)).double()
    first, last = list(module[0].parameters()), list(module[2].parameters())
    groups = [{"params": first, "momentum": momentum}, {"params": last, "momentum": 0.9}]
    return module, torch.optim.SGD(groups, 0.1, dampening=dampening)


def batch():
    draw = torch.Generator().manual_seed(1)
    return torch.randn(8, 8, dtype=torch.float64, generator=draw), torch.randn(8, 4, dtype=torch.float64, generator=draw)


def eager_step(module, optimizer):
    x, y = batch()
    optimizer.zero_grad()
    LOSS(module(x), y).backward()
    optimizer.step()


def started(module, optimizer):
    return partita.parallelize(module, batch(), optimizer, ranks=2, loss=LOSS)


def assert_equal(module, other):
    for a, b in zip(module.parameters(), other.parameters()):
        torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("start,dampening", [(0.0, 0.0), (0.9, 0.0), (0.9, 0.5)])
def test_momentum_of_one_group_changes_between_steps(start, dampening):
    (module, optimizer), (other, its) = made(start, dampening), made(start, dampening)
    step = started(other, its)
    for momentum in (start, start, 0.9, 0.9, 0.0, 0.9):
        optimizer.param_groups[0]["momentum"] = its.param_groups[0]["momentum"] = momentum
        eager_step(module, optimizer)
        step(*batch())
    assert_equal(module, step.module())


def test_momentum_that_begins_late_with_dampening_is_refused():
    module, optimizer = made(0.0, 0.5)
    step = started(module, optimizer)
    step(*batch())
    step(*batch())
    optimizer.param_groups[0]["momentum"] = 0.9
    for _ in range(2):  # the way through the module makes no buffer either
        with pytest.raises(partita.InputError, match="0.weight has no momentum buffer.*set dampening=0"):
            step(*batch())
        step.module()
    assert not any(optimizer.state[parameter] for parameter in module[0].parameters())


@pytest.mark.parametrize("dampening", [0.0, 0.5])
def test_a_state_with_buffers_of_some_parameters(dampening):
    (module, optimizer), (other, its) = made(0.9, dampening), made(0.9, dampening)
    for model, one in ((module, optimizer), (other, its)):
        eager_step(model, one)
        one.state[model[0].bias].clear()
    if dampening:
        with pytest.raises(partita.InputError, match="0.bias has no momentum buffer.*set dampening=0"):
            started(other, its)
        return
    step = started(other, its)
    for _ in range(3):
        eager_step(module, optimizer)
        step(*batch())
    assert_equal(module, step.module())


def test_momentum_where_no_group_had_any_needs_a_new_step():
    module, optimizer = made(0.0, 0.0)
    optimizer.param_groups[1]["momentum"] = 0.0
    step = started(module, optimizer)
    step(*batch())
    optimizer.param_groups[1]["momentum"] = 0.9
    with pytest.raises(partita.InputError, match="momentum of group 1 is 0.9, and was 0 in all groups.*a new step"):
        step(*batch())
    step.module()
    assert started(module, optimizer)(*batch()) > 0
