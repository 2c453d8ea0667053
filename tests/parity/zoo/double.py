"""Models of the zoo in float64, through and through."""

import contextlib

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from .case import Case

WIDE = {torch.float32: torch.float64, torch.bfloat16: torch.float64, torch.float16: torch.float64,
        torch.complex64: torch.complex128}
CASTS = (torch.Tensor.float, torch.Tensor.half, torch.Tensor.bfloat16)


class _WideCalls(TorchFunctionMode):
    """Casts to a smaller float, which many modules write into their forward, are casts to float64."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in CASTS:
            return args[0].double()
        args, kwargs = tree_map(_wide, (args, kwargs or {}))
        return func(*args, **kwargs)


class _WideOps(TorchDispatchMode):
    """The same one level below: backward, where a checkpoint runs forward once more, leaves modes of calls."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        args, kwargs = tree_map(_wide, (args, kwargs or {}))
        return func(*args, **kwargs)


def _wide(leaf):
    return WIDE.get(leaf, leaf) if isinstance(leaf, torch.dtype) else leaf


@contextlib.contextmanager
def in_double():
    """What is made, run or captured in the block is in float64 wherever it would be in fewer bits."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with _WideCalls(), _WideOps():
            yield
    finally:
        torch.set_default_dtype(before)


def double_batch(batch):
    """Its floats as float64."""
    def wide(value):
        return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value
    return {name: wide(value) for name, value in batch.items()} if isinstance(batch, dict) else tuple(map(wide, batch))


def make_double(case: Case):
    """As Case.make, in float64."""
    module, batch = case.make()
    return module.double(), double_batch(batch)
