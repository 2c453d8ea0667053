"""The ops that one call of forward makes, with what they are given: cheaper than a trace, and enough to see a difference."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_map

from .cached import plain_constant
from ..errors import InputError


class Recording(TorchDispatchMode):
    """Tensors are counted in the order they come in, first those given; constants are known by their values."""

    def __init__(self, given, path_of):
        """path_of: gives the part of the module that runs."""
        super().__init__()
        self.rows, self.paths, self.path_of = [], [], path_of
        self.numbers, self.alive = {}, []  # alive: so that no id is used again
        self.seeded = _state()
        for tensor in given:
            self._number(tensor)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.rows.append(hash((func, repr(tree_map(self._text, (args, kwargs or {}))))))
        self.paths.append(self.path_of())
        if torch.Tag.nondeterministic_seeded in func.tags and _state() != self.seeded:
            raise InputError(self.path_of(), "forward seeds torch's random numbers, and a step draws others, from a counter",
                             "make these numbers once, with register_buffer")
        return func(*args, **(kwargs or {}))

    def differs(self, other: "Recording") -> str | None:
        """The part of the module where the other call does something else; None where it does the same."""
        for row, its, path in zip(self.rows, other.rows, self.paths):
            if row != its:
                return path
        if len(self.rows) == len(other.rows):
            return None
        return max(self.paths, other.paths, key=len)[min(len(self.rows), len(other.rows))]

    def _text(self, leaf):
        return self._number(leaf) if isinstance(leaf, torch.Tensor) else leaf

    def _number(self, tensor):
        if id(tensor) not in self.numbers:
            self.alive.append(tensor)
            self.numbers[id(tensor)] = plain_constant(tensor) or f"%{len(self.numbers)}"
        return self.numbers[id(tensor)]


def _state() -> bytes:
    """Of torch's generator. Fake tensors draw nothing, so it stays as it is while forward is traced."""
    with _disable_current_modes():
        return torch.default_generator.get_state().numpy().tobytes()
