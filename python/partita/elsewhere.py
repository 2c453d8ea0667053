"""Memory of a module that something beside its parameters and buffers holds: views, arrays of numpy."""

import gc
from collections import Counter

import torch

from .errors import InputError


def held_elsewhere(tensors: dict) -> dict:
    """Aliases of those in whose memory others lie, by name. That memory stays anyway, so keeping it costs nothing."""
    names = _shared(tensors)
    if names:  # cycles of Python may hold some, which nobody reads any more
        gc.collect()
        names = _shared(tensors)
    return {name: tensors[name].data for name in names}


def _shared(tensors) -> list:
    own = Counter(tensor.untyped_storage()._cdata for tensor in tensors.values())
    return [name for name, tensor in tensors.items() if _holders(tensor) > own[tensor.untyped_storage()._cdata]
            and not any(stride == 0 and size > 1 for size, stride in zip(tensor.shape, tensor.stride()))]


def _holders(tensor) -> int:
    storage = tensor.untyped_storage()
    return torch._C._storage_Use_Count(storage._cdata) - 1  # without `storage` itself


def check_arrays(module: torch.nn.Module, named: dict):
    """Raises InputError where an attribute is an array of numpy in the memory of one of `named`: edits of it leave no trace."""
    spans = {name: _span(tensor) for name, tensor in named.items() if not tensor.untyped_storage().resizable()}
    for path, part in module.named_modules() if spans else ():
        for attribute, value in vars(part).items():
            first, end = _span_of_array(value)
            for name, (start, stop) in spans.items():
                if first < stop and start < end:
                    raise InputError(f"{path}.{attribute}".lstrip("."), f"it is an array in the memory of {name}, and edits of it "
                                     "leave no trace", f"give {name} memory of its own with torch.from_numpy(array).clone()")


def _span(tensor):
    storage = tensor.untyped_storage()
    return storage.data_ptr(), storage.data_ptr() + storage.nbytes()


def _span_of_array(value):
    if isinstance(value, torch.Tensor) or not hasattr(value, "__array_interface__"):
        return 0, 0
    first = value.__array_interface__["data"][0]
    return first, first + value.nbytes
