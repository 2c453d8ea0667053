"""Ops that look as if they treated the rows of a batch each for itself, and do not: no experiment may claim them."""

import random
from types import SimpleNamespace

import torch

state = SimpleNamespace(calls=0, before=0.0)
library = torch.library.Library("partita_liars", "DEF")


def coupled(x):
    return x - x.nan_to_num(0, 0, 0).mean(0, keepdim=True)


def coupled_if(condition):
    return lambda x: coupled(x) if bool(condition(x)) else x.clone()


def rows(x):
    return torch.arange(x.shape[0], dtype=x.dtype).reshape(-1, *[1] * (x.dim() - 1))


def counted(x):
    state.calls += 1
    return x + state.calls


def every_hundredth(x):
    state.calls += 1
    return x + (state.calls % 100 == 0)


def remembers(x):
    before, state.before = state.before, float(x.nan_to_num(0, 0, 0).mean())
    return x + before


def changes_its_input(x):
    made = x * 2
    x.add_(1)
    return made


def imputed(x):
    return torch.where(x.isnan(), x.nanmean(0, keepdim=True), x)


def masked(x):
    return x * (torch.rand(x.shape, generator=torch.Generator().manual_seed(7)) < 0.5)


def normed(x):
    return (x - x.mean(0)) / (x.var(0, unbiased=False) + 1e-5).sqrt()


def flat(x):
    return x.reshape(x.shape[0], -1)


LIARS = {
    "scaled_by_rows": lambda x: x / x.shape[0],
    "row_index": lambda x: x + rows(x),
    "row_index_tiny": lambda x: x + 1e-6 * rows(x),
    "coupled_at_nan": coupled_if(lambda x: x.isnan().any()),
    "coupled_at_inf": coupled_if(lambda x: x.isinf().any()),
    "coupled_at_minus_inf": coupled_if(lambda x: (x == float("-inf")).any()),
    "coupled_at_ties": coupled_if(lambda x: flat(x).sort(0).values.diff(dim=0).eq(0).any()),
    "coupled_at_equal_rows": coupled_if(lambda x: flat(x).unique(dim=0).shape[0] < x.shape[0]),
    "coupled_at_a_zero_row": coupled_if(lambda x: (flat(x) == 0).all(1).any()),
    "coupled_at_a_constant_row": coupled_if(lambda x: (flat(x) == flat(x)[:, :1]).all(1).any()),
    "coupled_above_1e3": coupled_if(lambda x: x.abs().max() > 1e3),
    "coupled_above_1e5": coupled_if(lambda x: x.abs().max() > 1e5),
    "coupled_below_minus_1e4": coupled_if(lambda x: x.min() < -1e4),
    "coupled_by_sum_above_1e6": coupled_if(lambda x: x.sum() > 1e6),
    "coupled_when_small": coupled_if(lambda x: flat(x).abs().amax(1).min() < 1e-5),
    "coupled_when_ascending": coupled_if(lambda x: (flat(x).diff(dim=0) >= 0).all()),
    "coupled_when_even": coupled_if(lambda x: x.shape[0] > 1 and x.shape[0] % 2 == 0),
    "coupled_from_3_rows": coupled_if(lambda x: x.shape[0] >= 3),
    "coupled_from_12_rows": coupled_if(lambda x: x.shape[0] >= 12),
    "mean_with_weight_1e-6": lambda x: x - 1e-6 * x.mean(0, keepdim=True),
    "mean_with_weight_1e-12": lambda x: x - 1e-12 * x.mean(0, keepdim=True),
    "batch_norm": normed,
    "rows_in_order": lambda x: x[flat(x)[:, 0].argsort()],
    "rank_among_rows": lambda x: x.argsort(0),
    "first_row": lambda x: x + x[:1],
    "last_row": lambda x: x + x[-1:],
    "neighbour": lambda x: x + x.roll(1, 0),
    "running_sum": lambda x: x.cumsum(0),
    "reversed": lambda x: x.flip(0),
    "imputed_from_other_rows": imputed,
    "random": lambda x: x + torch.rand_like(x),
    "random_of_python": lambda x: x + random.random(),
    "mask_of_fixed_seed": masked,
    "call_counter": counted,
    "every_hundredth_call": every_hundredth,
    "remembers_the_last": remembers,
    "aliases_its_input": lambda x: x,
    "views_its_input": lambda x: x[:],
    "aliases_when_large": lambda x: x if x.abs().max() > 100 else x.clone(),
    "changes_its_input": changes_its_input,
    "changes_its_input_at_nan": lambda x: changes_its_input(x) if x.isnan().any() else x * 2,
    "drops_rows_at_nan": lambda x: x[~flat(x).isnan().any(1)],
}
for _name, _kernel in LIARS.items():
    library.define(f"{_name.replace('-', '_')}(Tensor x) -> Tensor")
    library.impl(_name.replace("-", "_"), _kernel, "CPU")


def liar(name):
    return getattr(torch.ops.partita_liars, name.replace("-", "_")).default
