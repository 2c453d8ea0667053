"""Values that are known while a step is traced: of tensors that depend on constants only, or on this very batch.

Modules read such values to decide what to do: `if mask.any():` with a mask they made themselves. Fake tensors hold no
values, so each known tensor has a real one beside it, computed by the same ops.
"""

from dataclasses import dataclass

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.weak import WeakTensorKeyDictionary

aten = torch.ops.aten
# Larger values are not followed: masks of long sequences would be computed for nothing.
LARGEST = 1 << 16


@dataclass
class Value:
    real: torch.Tensor
    of_data: bool  # it depends on parameters, buffers or the batch


class Known(TorchDispatchMode):
    """Follows known values beside the traced ones.

    given: pairs (traced tensor, its real value) whose values may decide what the step does.
    baked: called with an op where a value of them did decide.
    """

    def __init__(self, given=(), baked=lambda op: None):
        super().__init__()
        self.values = WeakTensorKeyDictionary()
        self.overwritten = set()  # storages that something unknown was written to
        self.kept = []            # so that no address in `overwritten` is used again
        self.baked = baked
        self.largest = LARGEST
        with _disable_current_modes():
            for traced, real in given:
                self.values[traced] = Value(real.detach().clone(), True)
                self.largest = None

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
        known = [self._value(tensor) for tensor in tensors]
        if func is aten.index.Tensor:
            args = (args[0], self._indices(args[1]))
        if func is aten.masked_select.default and self._value(args[1]) is not None:
            return self._select(*args)
        if None in known or torch.Tag.nondeterministic_seeded in func.tags:
            self._forget(func, known)
            return func(*args, **kwargs)
        of_data = any(value.of_data for value in known)
        if torch.Tag.data_dependent_output in func.tags or torch.Tag.dynamic_output_shape in func.tags:
            return self._read(func, args, kwargs, of_data)
        traced = func(*args, **kwargs)
        self._follow(func, args, kwargs, traced, of_data)
        return traced

    def same_for_every_batch(self, tensor):
        """Is the value known, and does it not depend on parameters, buffers or the batch?"""
        value = self._value(tensor)
        return value is not None and not value.of_data

    def _value(self, tensor):
        if isinstance(tensor, torch._subclasses.FakeTensor):
            value = self.values.get(tensor)
        else:
            value = Value(tensor, False)
        lost = value is None or value.real.untyped_storage()._cdata in self.overwritten
        return None if lost else value

    def _real(self, args, kwargs):
        def real(leaf):
            return self._value(leaf).real if isinstance(leaf, torch.Tensor) else leaf
        return tree_map(real, args), tree_map(real, kwargs)

    def _call(self, func, args, kwargs):
        args, kwargs = self._real(args, kwargs)
        with _disable_current_modes(), torch.no_grad():
            result = func(*args, **kwargs)
            # Shares nothing with the module's own tensors, which later ops may write to.
            return result.clone() if func in (aten.lift_fresh.default, aten.lift.default) else result

    def _follow(self, func, args, kwargs, traced, of_data):
        sizes = [leaf.numel() for leaf in tree_leaves((args, kwargs, traced)) if isinstance(leaf, torch.Tensor)]
        if self.largest is not None and max(sizes, default=0) > self.largest:
            self._forget(func, [self._value(t) for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)])
            return
        real = self._call(func, args, kwargs)
        for fake, value in zip(tree_leaves(traced), tree_leaves(real)):
            if isinstance(fake, torch._subclasses.FakeTensor) and isinstance(value, torch.Tensor):
                self.values[fake] = Value(value, of_data)

    def _forget(self, func, known):
        if func._schema.is_mutable:
            for value in known:
                if value is not None:
                    self.kept.append(value.real)
                    self.overwritten.add(value.real.untyped_storage()._cdata)

    def _read(self, func, args, kwargs, of_data):
        if of_data and func not in (aten._local_scalar_dense.default, aten.nonzero.default, aten.equal.default):
            return func(*args, **kwargs)  # its result would hold values of this batch: let the tracer refuse it
        if of_data:
            self.baked(func)
        result = self._call(func, args, kwargs)
        return tree_map(lambda leaf: _constant(leaf) if isinstance(leaf, torch.Tensor) else leaf, result)

    def _indices(self, indices):
        """Masks with known values as the places where they are true, so that the shape of the result is known."""
        made = []
        for index in indices:
            value = self._value(index) if index is not None and index.dtype in (torch.bool, torch.uint8) else None
            if value is None:
                made.append(index)
                continue
            made += self._places(value, index.shape)
        return made

    def _select(self, x, mask):
        shape = torch.broadcast_shapes(x.shape, mask.shape)
        return aten.index.Tensor(aten.expand.default(x, shape), self._places(self._value(mask), shape))

    def _places(self, mask, shape):
        if mask.of_data:
            self.baked(aten.nonzero.default)
        with _disable_current_modes():
            places = mask.real.expand(shape).nonzero().unbind(1)
        return [_constant(place.contiguous()) for place in places]


def _constant(real):
    return aten.lift_fresh_copy.default(real)
