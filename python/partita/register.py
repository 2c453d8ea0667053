"""Rows for ops of one's own."""

import json
from pathlib import Path

from .errors import InputError
from .native import library

_axes = {}  # "mylib.op.default" -> letters


def register(op: str, axes: str | None = None) -> None:
    """Says how an op may be split: `register("mylib::op", "b s h, h -> b s h")`, or `register("rows.json")`, a file
    with an object of such pairs.

    One letter for each dimension of each tensor argument, in order, then those of its results. The same letter is the
    same dimension; a letter that a result lacks is summed over; `!h` stays whole. It counts for captures from here on
    and goes into their files.
    """
    if axes is None:
        for name, letters in _read(op).items():
            register(name, letters)
        return
    target = _target(op)
    if library().has_row(target):
        raise InputError(op, "Partita has a row for this op", "register ops of your own only")
    if not isinstance(axes, str) or axes.count("->") != 1:
        raise InputError(op, f"its row is {axes!r}", 'write letters with an arrow, such as "b s h, h -> b s h"')
    _axes[target] = axes


def axes_of(target: str) -> str | None:
    """The letters registered for `mylib.op.default`."""
    return _axes.get(target)


def _target(op):
    namespace, _, name = op.partition("::")
    if not name or "::" in name:
        raise InputError(op, "this is not the name of an op", 'write it as "mylib::op" or "mylib::op.overload"')
    return f"{namespace}.{name}" if "." in name else f"{namespace}.{name}.default"


def _read(path):
    try:
        rows = json.loads(Path(path).read_text())
    except (OSError, ValueError) as error:
        raise InputError(str(path), f"no file of rows: {error}", 'give {"mylib::op": "b s h, h -> b s h"}') from error
    if not isinstance(rows, dict):
        raise InputError(str(path), f"it holds a {type(rows).__name__}", 'give {"mylib::op": "b s h, h -> b s h"}')
    return rows
