"""What a user gives as a batch -> its tensors by name."""

from collections.abc import Mapping

import torch

from .errors import InputError

FORMS = "give the batch as a dict, a tuple, or keywords, as the step was captured with"


def batch_of(args: tuple, kwargs: dict):
    """The batch of a call in the form that `capture` takes: step(batch), step(x, y), step(**batch)."""
    if kwargs and args:
        raise InputError("batch", f"it is given by position and as keywords ({', '.join(kwargs)})", FORMS)
    if not args and not kwargs:
        raise InputError("batch", "nothing was given", FORMS)
    if kwargs:
        return dict(kwargs)
    if len(args) > 1 or isinstance(args[0], torch.Tensor):
        return tuple(args)
    batch = args[0]
    if isinstance(batch, Mapping):
        return dict(batch)
    if isinstance(batch, (tuple, list)):
        return tuple(batch)
    raise InputError("batch", f"it is a {type(batch).__name__}{_hint(batch)}", FORMS)


def check_tensors(batch):
    """Raises InputError for arrays that are not torch's."""
    items = batch.items() if isinstance(batch, Mapping) else enumerate(batch)
    for name, value in items:
        if hasattr(value, "__array__") and not isinstance(value, torch.Tensor) and hasattr(value, "dtype"):
            raise InputError(f"batch {name}", f"it is a {type(value).__module__.split('.')[0]} array",
                             "turn it into a tensor with torch.from_numpy(array)")


def tensors_of(batch) -> dict:
    items = batch.items() if isinstance(batch, Mapping) else enumerate(batch)
    return {name: value for name, value in items if isinstance(value, torch.Tensor)}


def _hint(batch):
    return ", an array that is not torch's" if hasattr(batch, "__array__") else ""


def form_of(batch) -> tuple:
    """What a captured step depends on: names, dtypes, shapes and layouts of tensors, and the plain values beside them."""
    items = sorted(batch.items()) if isinstance(batch, Mapping) else enumerate(batch)
    return tuple((name, str(value.dtype), tuple(value.shape), _layout(value)) if isinstance(value, torch.Tensor)
                 else (name, repr(value)) for name, value in items)


def _layout(value):
    """How a tensor lies in memory, which forward may ask for; None for the usual way."""
    return None if value.is_contiguous() else value.stride()


def check_form(first: tuple, now: tuple):
    """Raises InputError where `now` is no batch of the same step: other names, dtypes or numbers of dimensions."""
    names, others = [entry[0] for entry in first], [entry[0] for entry in now]
    if set(names) != set(others):
        wanted = ", ".join(map(str, names))
        if any(isinstance(name, int) for name in [*names, *others]):
            raise InputError("batch", f"it has {_several(others)}, the step was captured with {_several(names)}", FORMS)
        raise InputError("batch", f"it has {', '.join(map(str, others)) or 'no tensor'}",
                         f"give {wanted}, as the step was captured with")
    known = {entry[0]: entry for entry in first}
    for entry in now:
        old = known[entry[0]]
        if len(old) != len(entry):
            raise InputError(f"batch {entry[0]}", "it is a tensor here and a plain value there", FORMS)
        if len(entry) > 2 and old[1] != entry[1]:
            raise InputError(f"batch {entry[0]}", f"it is {_short(entry[1])}, the step was captured with {_short(old[1])}",
                             f"try .to({old[1]})" if old[1] != "torch.int64" else "try .long()")


def _several(names):
    return f"{len(names)} values" if all(isinstance(name, int) for name in names) else ", ".join(map(str, names))


def _short(dtype):
    return dtype.removeprefix("torch.")


def tokens_of(batch) -> int:
    """Tokens of a batch: elements of its first matrix of whole numbers; else its rows."""
    tensors = tensors_of(batch).values()
    for value in tensors:
        if value.dim() >= 2 and not value.dtype.is_floating_point and not value.dtype.is_complex:
            return value.numel()
    return next((value.shape[0] for value in tensors if value.dim()), 1)
