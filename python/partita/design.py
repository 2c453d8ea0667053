"""Plans by hand: transform, assign, order."""

import json

from .model import Model
from .native import library
from .plan import Plan


class Design:
    """A plan in the making; every call returns the design, so that calls can be chained.

    ops: modules or ops by name. "h.*.attn" is every module whose path ends so, with what is inside of it; a name with a
    slash is an op; several stand in a list.
    atom: what is cut: "batch", "tokens", "heads", "hidden", or an atom or pattern of atoms by name.
    """

    def __init__(self, model: Model, ranks: int):
        self._native = library().Design(model.handle(), ranks)

    def split(self, ops: str, atom: str, parts: int, axis: str = "") -> "Design":
        """Over `parts` devices: the axis `axis` of the mesh, "dp" for the batch and "tp" else where it is not given."""
        self._native.split(ops, atom, parts, axis)
        return self

    def assign(self, ops, devices) -> "Design":
        """A stage of its own, after those assigned before. Stages share all of their devices or none."""
        self._native.assign(_list(ops), list(devices))
        return self

    def loop(self, ops, atom: str, pieces: int, through: bool = False) -> "Design":
        """In `pieces`, one after another; through: forward and backward of a piece before the next."""
        self._native.loop(_list(ops), atom, pieces, through)
        return self

    def store(self, params: str, what: str, axis: str = "dp") -> "Design":
        """What belongs to these parameters lies in pieces over an axis: "state", "gradient" or "parameter"."""
        self._native.store(params, what, axis)
        return self

    def recompute(self, ops, keep=()) -> "Design":
        """One block: run again in backward instead of keeping what it made, but for what ops matching `keep` made."""
        self._native.recompute(_list(ops), _list(keep))
        return self

    def microbatches(self, count: int) -> "Design":
        self._native.microbatches(count)
        return self

    def order(self, schedule) -> "Design":
        """A schedule by name, or the steps of each device: ["0F0,0F1,0B0,0B1", ...], stage, letter, micro-batch."""
        self._native.order(schedule if isinstance(schedule, str) else [_row(row) for row in schedule])
        return self

    def cut(self, stages: int, passes: int = 1) -> list:
        """The ops of `stages` stages, balanced; with passes, of a model that goes so often through its weights."""
        return self._native.cut(stages, passes)

    def plan(self) -> Plan:
        """The plan; InputError where something about it is wrong."""
        return Plan(json.loads(self._native.plan()))


def design(model: Model, ranks: int) -> Design:
    """A plan by hand for `ranks` devices: design(model, ranks=4).split("h.*.attn", "heads", 4)...plan()."""
    return Design(model, ranks)


def _list(ops) -> list:
    return [ops] if isinstance(ops, str) else list(ops)


def _row(row) -> str:
    return row if isinstance(row, str) else ",".join(row)
