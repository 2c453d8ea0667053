"""From what a module returns to the scalar that is trained."""

import inspect
from collections.abc import Mapping

import torch

from ..errors import InputError


def apply_loss(loss, output, batch, rest: list, where: str):
    """loss: a callable of (output, batch), or one of torch's own losses, which takes (output, target).

    rest: what of the batch forward does not take.
    """
    if not callable(loss):
        raise InputError("loss", f"it is a {type(loss).__name__}", "give a callable of (output, batch) or a loss module")
    if not _takes_target(loss):
        _check_takes_batch(loss)
        return loss(output, batch)
    targets = [value for value in rest if isinstance(value, torch.Tensor)]
    if len(targets) != 1:
        raise InputError(where, f"the batch leaves {len(targets)} tensors that forward does not take",
                         "give it one, the target, as in (x, y); or loss=, a callable of (output, batch)")
    if not isinstance(output, torch.Tensor):
        raise InputError(where, f"the module returns a {type(output).__name__}, not a tensor",
                         "give loss=, a callable of (output, batch) that takes the tensor out of it")
    return loss(output, targets[0])


def _check_takes_batch(loss):
    try:
        signature = inspect.signature(loss)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(None, None)
    except TypeError:
        raise InputError("loss", f"it takes {signature}, and is called with (output, batch)",
                         "take the batch as one argument: lambda output, batch: ...") from None


def _takes_target(loss):
    """torch's losses, and modules and functions whose second argument says so."""
    if isinstance(loss, torch.nn.Module) or getattr(loss, "__module__", "") == "torch.nn.functional":
        return True
    try:
        names = list(inspect.signature(loss).parameters)
    except (TypeError, ValueError):
        return False
    return len(names) > 1 and names[1] in ("target", "targets")


def find_loss(output):
    """The `.loss` of what a module returned; or that itself, or the first of a tuple, where it is a scalar."""
    value = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    first = output[0] if isinstance(output, (tuple, list)) and output else output
    if value is None and isinstance(first, torch.Tensor) and first.dim() == 0:
        return first
    return value
