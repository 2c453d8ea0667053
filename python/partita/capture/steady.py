"""Every call of forward is to be the step that was captured: what can be noticed of those that are not."""

from ..errors import InputError
from .untouched import Attributes
from .watched import Watch

OTHERWISE = "a later call of forward does something else than the first"


def differs(changed, path: str | None) -> InputError:
    """changed: attributes that forward changes. path: the part of the module where calls part, where it is known."""
    remedy = "keep it as a tensor with register_buffer; if only the first call differs, call the module once before"
    if changed:
        names = ", ".join(changed[:3]) + (", ..." if len(changed) > 3 else "")
        return InputError(names, f"forward changes this, and {OTHERWISE}", remedy)
    return InputError(path or "forward", f"{OTHERWISE}, by something that it keeps or draws outside of the module's attributes "
                      "(a global, a class, a closure, Python's or numpy's random numbers)",
                      "keep it as a tensor with register_buffer, draw with torch, or give it in the batch")


def check_moving(module, before: Attributes, call):
    """Raises InputError where forward looks at a number or a container that changes in every call.

    before: the attributes before the last call. call: makes another one.
    """
    moving = before.moved()
    if not moving:
        return
    watch = Watch(module, moving)
    call()
    if watch.read:
        raise InputError(watch.read[0], "forward changes this in every call and looks at it, so that a later call may do something "
                         "else than the first two", "keep it as a tensor with register_buffer, or count in the training loop")
