"""A captured step in the compiled executor beside the module itself."""

import warnings
from dataclasses import dataclass, field

import torch

import partita

from .case import Case


@dataclass
class Comparison:
    """Numbers of one case; `wrong` has the largest relative difference of every value that is not bitwise equal."""

    ops: int
    opaque: list
    inferred: list
    gradients: int
    buffers: int
    wrong: dict = field(default_factory=dict)
    missing: list = field(default_factory=list)  # gradients or buffers that only one of the two has


def compare(case: Case) -> Comparison:
    module, batch = case.make()
    with case.around(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is baked in
        model = partita.capture(module, batch, case.loss, bake=case.bake)
    got = model.run(module, batch)
    before = {name: value.clone() for name, value in module.named_buffers()}
    loss, gradients = eager(case, module, batch)
    after = dict(module.named_buffers())
    changed = {name: after[name] for name in after if not _same(after[name], before[name])}
    pairs = {**_pairs(got.grads, gradients), **_pairs(got.buffers, after),
             "loss": (torch.tensor(got.loss, dtype=loss.dtype), loss)}
    return Comparison(
        ops=len(model.ops), opaque=sorted({op["target"] for op in model.opaque_ops}),
        inferred=sorted({op["target"] for op in model.inferred_ops}), gradients=len(gradients), buffers=len(got.buffers),
        wrong={name: difference(a, b) for name, (a, b) in pairs.items() if not _same(a, b)},
        missing=sorted((got.grads.keys() ^ gradients.keys()) | (changed.keys() - got.buffers.keys())))


def eager(case, module, batch):
    """Loss and gradients of PyTorch itself; buffers change in the module."""
    with case.around():
        output = module(**batch) if isinstance(batch, dict) else module(*batch)
        loss = output.loss if case.loss is None else case.loss(output, batch)
    loss.backward()
    return loss.detach(), {name: p.grad for name, p in module.named_parameters() if p.grad is not None}


def difference(got, want) -> float:
    """The largest difference, relative to the largest value."""
    scale = want.double().abs().max().item() or 1.0
    return (got.double() - want.double()).abs().max().item() / scale


def _same(a, b):
    return a.shape == b.shape and torch.equal(torch.nan_to_num(a), torch.nan_to_num(b))


def _pairs(got, want):
    return {name: (got[name], want[name]) for name in got.keys() & want.keys()}
