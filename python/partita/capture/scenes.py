"""Values for the operands of an op that is tried: ordinary ones, and those at which rows of a batch show that they know
of each other."""

from dataclasses import dataclass

import torch

SHARE = 0.2  # of elements that a scene makes special

# What a scene is made of, as float64: (generator, shape, axis of the rows or None).
SCENES = {
    "normal": lambda g, shape, axis: _normal(g, shape),
    "unit": lambda g, shape, axis: torch.rand(shape, generator=g, dtype=torch.float64),
    "small": lambda g, shape, axis: 1e-3 * _normal(g, shape),
    "large": lambda g, shape, axis: 1e6 * _normal(g, shape),
    "whole": lambda g, shape, axis: torch.randint(-2, 3, shape, generator=g).double(),
    "two values": lambda g, shape, axis: torch.randint(0, 2, shape, generator=g).double(),
    "zeros": lambda g, shape, axis: torch.zeros(shape, dtype=torch.float64),
    "ones": lambda g, shape, axis: torch.ones(shape, dtype=torch.float64),
    "negative": lambda g, shape, axis: -0.1 - torch.rand(shape, generator=g, dtype=torch.float64),
    "magnitudes": lambda g, shape, axis: _normal(g, shape) * 10 ** (9 * torch.rand(shape, generator=g).double() - 3),
    "rows alike": lambda g, shape, axis: _alike(_normal(g, shape), axis),
    "rows nearly alike": lambda g, shape, axis: _alike(_normal(g, shape), axis) + 1e-9 * _normal(g, shape),
    "rows of one value": lambda g, shape, axis: _flat(_normal(g, shape), axis),
    "rows ascending": lambda g, shape, axis: _sorted(_normal(g, shape), axis),
    "rows descending": lambda g, shape, axis: -_sorted(_normal(g, shape), axis),
    "holes": lambda g, shape, axis: _some(g, _normal(g, shape), float("nan")),
    "peaks": lambda g, shape, axis: _some(g, _normal(g, shape), float("inf")),
}
# A batch of whole numbers or truth values has fewer ways to be special.
LOWEST, HIGHEST = ("zeros",), ("ones",)
ORDERED = {"rows alike": lambda t, axis: _alike(t, axis), "rows nearly alike": lambda t, axis: _alike(t, axis),
           "rows of one value": lambda t, axis: _flat(t, axis),
           "rows ascending": lambda t, axis: _sorted(t, axis), "rows descending": lambda t, axis: _sorted(t, axis).flip(axis)}


@dataclass(frozen=True)
class Change:
    """What becomes of one row: all of it, one element of it, or its scale takes a value."""

    what: str
    value: float = 0.0


POWERS = [sign * 10.0 ** power for power in (-30, -6, -3, -1, 1, 2, 3, 4, 5, 6, 9, 20) for sign in (1, -1)]
CHANGES = ([Change("redrawn"), Change("another row's")]
           + [Change("row", value) for value in (float("nan"), float("inf"), float("-inf"), 0.0, 1.0, -1.0)]
           + [Change("element", value) for value in (float("nan"), float("inf"), float("-inf"), 0.0, *POWERS)]
           + [Change("scale", value) for value in POWERS])


def draw(scene: str, generator, shape, dtype, axis, limits) -> torch.Tensor:
    """An operand. limits: [low, high) of whole numbers."""
    if dtype.is_floating_point:
        return SCENES[scene](generator, shape, axis).to(dtype)
    low, high = (0, 2) if dtype == torch.bool else limits
    if scene in LOWEST + HIGHEST:
        return torch.full(shape, low if scene in LOWEST else high - 1, dtype=dtype)
    values = torch.randint(low, high, shape, generator=generator)
    if axis is not None and scene in ORDERED:
        values = ORDERED[scene](values, axis)
    return values.to(dtype)


def change_row(tensor: torch.Tensor, axis: int, row: int, change: Change, generator, limits) -> torch.Tensor:
    """`tensor` with another row; whole numbers take the lowest or highest value they may have, or new ones."""
    changed = tensor.clone(memory_format=torch.preserve_format)
    place = changed.select(axis, row)
    if change.what == "redrawn":
        place.copy_(draw("normal", generator, place.shape, tensor.dtype, None, limits))
    elif change.what == "another row's":
        place.copy_(tensor.select(axis, (row + 1) % tensor.shape[axis]))
    elif not tensor.dtype.is_floating_point:
        low, high = (0, 2) if tensor.dtype == torch.bool else limits
        place.fill_(high - 1 if change.value > 0 else low)
    elif change.what == "row":
        place.fill_(change.value)
    elif change.what == "scale":
        place.mul_(change.value)
    else:
        at = tuple(int(torch.randint(size, (), generator=generator)) for size in place.shape)
        place[at] = change.value
    return changed


def _normal(generator, shape):
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def _alike(tensor, axis):
    return tensor if axis is None else tensor.narrow(axis, 0, 1).expand_as(tensor)


def _flat(tensor, axis):
    """Every row has one value."""
    if axis is None:
        return tensor
    ends = [slice(0, 1) if d != axis else slice(None) for d in range(tensor.dim())]
    return tensor[tuple(ends)].expand_as(tensor)


def _sorted(tensor, axis):
    return tensor if axis is None else tensor.sort(axis).values


def _some(generator, tensor, value):
    return tensor.masked_fill(torch.rand(tensor.shape, generator=generator) < SHARE, value)
