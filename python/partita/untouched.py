"""Tracing runs a module on fake tensors; none of them may stay behind in it."""

import contextlib
import functools
import gc

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_leaves


@contextlib.contextmanager
def untouched(module: torch.nn.Module):
    """Gives every submodule its attributes back at the end, and clears the caches that took fake tensors."""
    before = [(part, dict(vars(part)), _contents(part)) for part in module.modules()]
    try:
        yield
    finally:
        for part, attributes, contents in before:
            vars(part).clear()
            vars(part).update(attributes)
            for container, saved in contents:
                _refill(container, saved)
        _clear_caches()


def _contents(part):
    containers = [value for value in vars(part).values() if isinstance(value, (dict, list, set))]
    return [(container, container.copy()) for container in containers]


def _refill(container, saved):
    container.clear()
    (container.extend if isinstance(container, list) else container.update)(saved)


def _clear_caches():
    for wrapper in gc.get_objects():
        if type(wrapper) is functools._lru_cache_wrapper and wrapper.cache_info().currsize:
            if any(isinstance(leaf, FakeTensor) for leaf in tree_leaves(gc.get_referents(wrapper))):
                wrapper.cache_clear()
