"""One call of an op as it was captured: all that is needed to make it again with other tensors."""

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Form:
    """Of a tensor: its sizes, its dimensions in the order they lie in memory, outermost first, and its dtype."""

    shape: tuple
    order: tuple
    dtype: torch.dtype


@dataclass(frozen=True)
class Place:
    """Where operand `index` stands among the arguments."""

    index: int


@dataclass(frozen=True)
class Call:
    op: torch._ops.OpOverload
    args: tuple
    kwargs: dict
    operands: tuple  # Forms in order of appearance, as C++ counts the inputs of an op
    results: tuple   # Forms; None for a result that is no tensor

    @property
    def key(self) -> str:
        """Equal calls have equal keys, in any process."""
        return repr((str(self.op), self.args, self.kwargs, self.operands, self.results))

    def whole_numbers(self) -> set:
        """Those among its arguments that are no tensors: sizes may hide there."""
        return {value for value in self.plain_values() if isinstance(value, int) and not isinstance(value, bool)}

    def plain_values(self):
        """Of its arguments, lists taken apart."""
        return _leaves((self.args, tuple(self.kwargs.values())))

    def run(self, tensors) -> list:
        """Its results with these operands; None for a result that is no tensor."""
        args, kwargs = _replaced(self.args, tensors), {k: _replaced(v, tensors) for k, v in self.kwargs.items()}
        return _results(self.op(*args, **kwargs))


def call_of(op, args, kwargs, results) -> Call:
    """Of a call that was made: tensors, real or fake, stand among `args`, `kwargs` and `results`."""
    operands = []

    def place(value):
        if isinstance(value, torch.Tensor):
            operands.append(_form(value))
            return Place(len(operands) - 1)
        return type(value)(map(place, value)) if isinstance(value, (list, tuple)) else value

    args = tuple(place(value) for value in args)
    kwargs = {key: place(value) for key, value in kwargs.items()}
    return Call(op, args, kwargs, tuple(operands),
                tuple(_form(value) if value is not None else None for value in _results(results)))


def call_of_node(node: torch.fx.Node) -> Call:
    args, kwargs = torch.fx.map_arg((node.args, node.kwargs), lambda n: n.meta["val"])
    return call_of(node.target, _plain(args), {key: _plain(value) for key, value in kwargs.items()}, node.meta["val"])


def compact(tensor: torch.Tensor, order) -> torch.Tensor:
    """The same values without gaps, dimensions lying in this order: how ranks hold a piece."""
    back = sorted(range(len(order)), key=order.__getitem__)
    return tensor.permute(order).clone(memory_format=torch.contiguous_format).permute(back)


def _form(value):
    order = sorted(range(value.dim()), key=lambda d: (-value.stride(d), d))
    return Form(tuple(map(int, value.shape)), tuple(order), value.dtype)


def _results(made):
    several = isinstance(made, (list, tuple))
    return [value if isinstance(value, torch.Tensor) else None for value in (made if several else [made])]


def _plain(value):
    """fx keeps lists and tuples of its own kinds."""
    for kind in (list, tuple):
        if isinstance(value, kind):
            return kind(_plain(item) for item in value)
    return value


def _leaves(value):
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def _replaced(value, tensors):
    if isinstance(value, Place):
        return tensors[value.index]
    return type(value)(_replaced(item, tensors) for item in value) if isinstance(value, (list, tuple)) else value
