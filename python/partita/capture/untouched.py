"""Tracing runs a module on fake tensors; none of them may stay behind in it."""

import collections
import contextlib
import functools
import gc

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_leaves


@contextlib.contextmanager
def untouched(module: torch.nn.Module):
    """Gives every submodule its attributes back at the end, and clears the caches that took fake tensors."""
    before = [(part, dict(vars(part)), _contents(part)) for part in module.modules()]
    with _disable_current_modes():
        tensors = [(value, value._version, value.detach().clone())
                   for part in module.modules() for value in _plain_tensors(part)]
    try:
        yield
    finally:
        for value, version, copy in tensors:
            if value._version != version:
                with _disable_current_modes(), torch.no_grad():
                    value.copy_(copy)
        for part, attributes, contents in before:
            vars(part).clear()
            vars(part).update(attributes)
            for container, saved in contents:
                _refill(container, saved)
        clear_caches()


def _plain_tensors(part):
    """Those that are no parameters or buffers: tracing computes with them, and may write to them."""
    return [value for value in vars(part).values() if isinstance(value, torch.Tensor) and value.grad_fn is None
            and not isinstance(value, FakeTensor)]


def _contents(part):
    containers = [value for value in vars(part).values() if isinstance(value, (dict, list, set, collections.deque))]
    return [(container, container.copy()) for container in containers]


class Attributes:
    """What the parts of a module hold in their attributes at one moment."""

    def __init__(self, module: torch.nn.Module):
        self.module, self.held = module, self._now(module)

    def changed(self) -> list:
        """The names of those that are another object, or hold others, than then."""
        now = self._now(self.module)
        names = [name for name in {**self.held, **now} if not _same(self.held.get(name), now.get(name))]
        return [name.replace("_buffers.", "") for name in names]

    def moved(self) -> list:
        """The names of those whose numbers or lengths are others than then."""
        now = self._now(self.module)
        return [name for name in now if name in self.held and _numbers(self.held[name]) != _numbers(now[name])]

    @staticmethod
    def _now(module):
        held = {}
        for path, part in module.named_modules():
            for name, value in vars(part).items():
                at = f"{path}.{name}".lstrip(".")
                if name == "_buffers":
                    held |= {f"{at}.{key}": (buffer,) for key, buffer in value.items()}
                else:
                    held[at] = tuple(value.items()) if isinstance(value, dict) else \
                        tuple(value) if isinstance(value, (list, tuple, set, collections.deque)) else (value,)
        return held


def _numbers(held):
    numbers = [_numbers(item) if isinstance(item, tuple) else repr(item) for item in held
               if isinstance(item, (tuple, bool, int, float))]
    return len(held), numbers


def _same(before, after):
    if before is None or after is None or len(before) != len(after):
        return False
    return all(a is b or (isinstance(a, tuple) and isinstance(b, tuple) and _same(a, b)) or _equal(a, b)
               for a, b in zip(before, after))


def _equal(a, b):
    return type(a) is type(b) and isinstance(a, (bool, int, float, str)) and a == b


def _refill(container, saved):
    container.clear()
    (container.extend if isinstance(container, (list, collections.deque)) else container.update)(saved)


def clear_caches():
    """Clears those that took fake tensors: what forward finds there is of another trace."""
    for wrapper in gc.get_objects():
        if type(wrapper) is functools._lru_cache_wrapper and wrapper.cache_info().currsize:
            if any(isinstance(leaf, FakeTensor) for leaf in tree_leaves(gc.get_referents(wrapper))):
                wrapper.cache_clear()
