"""Random numbers of a step: from a counter, by plain tensor ops.

Each number is a hash of (seed and step, which draw, the element's place in the whole tensor). Places come from one
vector per dimension, so however a plan splits the tensor, every element gets the same number.
The state is a buffer of the step: a seed, advanced by one at the end of every step.
"""

import math

import torch

from .errors import InputError

aten = torch.ops.aten
STATE = "random.state"
# Odd, without pattern in their bits; products wrap around at 64 bits.
KEY, STREAM = -4658895280553007687, 6364136223846793005
DIMENSIONS = 64  # more than a tensor has
HALF = 1 << 32
BITS = 24


def draws(graph) -> bool:
    """Does a traced step draw random numbers?"""
    return any(node.target in DRAWS for node in graph.graph.nodes)


def refuse_others(graph):
    for node in graph.graph.nodes:
        tags = getattr(node.target, "tags", ())
        if torch.Tag.nondeterministic_seeded in tags and node.target not in DRAWS and not _draws_nothing(node):
            raise InputError(node.meta["origin"].path, f"{node.target} draws random numbers that no plan could repeat",
                             "draw with torch.rand, randn, bernoulli or dropout, or give the numbers in the batch")


def _draws_nothing(node):
    schema = node.target._schema.arguments
    given = {**{a.name: v for a, v in zip(schema, node.args)}, **node.kwargs}
    return any("dropout" in a.name and not given.get(a.name, a.default_value) for a in schema)


class Draws:
    """Replaces the ops of DRAWS one by one; `state` is the tensor of the step's state."""

    def __init__(self, state):
        self.state = state
        self.count = 0

    def next_state(self):
        return self.state + 1

    def replace(self, target, args, kwargs):
        return DRAWS[target](self, *args, **kwargs)

    def words(self, shape):
        """Signed 64-bit numbers, one for each element; their high bits are the good ones."""
        self.count += 1
        start = _hash(self.state * STREAM + self.count)
        sums = start
        for dim, size in enumerate(shape):
            places = _hash(torch.arange(size) * STREAM + (start + (self.count * DIMENSIONS + dim)))
            sums = sums.unsqueeze(-1) + places if dim else places
        # Hashed places add up; two squarings make of the sum a number that has nothing to do with its neighbours'.
        return _square(_rotate(_square(sums)))

    def bits(self, shape):
        """Whole numbers in [0, 2^BITS), one for each element."""
        return torch.div(self.words(shape), 1 << (64 - BITS), rounding_mode="floor") + (1 << (BITS - 1))

    def uniform(self, shape, dtype=torch.float32):
        return self.bits(shape).to(dtype) * 2.0 ** -BITS

    def normal(self, shape, dtype=torch.float32):
        # Box and Muller; the half step keeps the logarithm finite.
        radius = torch.sqrt(torch.log(self.uniform(shape, dtype) + 2.0 ** -(BITS + 1)) * -2.0)
        return radius * torch.cos(self.uniform(shape, dtype) * (2 * math.pi))

    def keep(self, shape, probability):
        """True with this probability."""
        least = round((1 - probability) * 2 ** BITS) - (1 << (BITS - 1))
        return self.words(shape) >= min(least << (64 - BITS), (1 << 63) - 1)


# The rounds of Widynski's generator "squares" (arXiv 2004.06278): counter times key, then square, add, swap halves.
def _hash(counter):
    x = counter * KEY
    for _ in range(3):
        x = _rotate(_square(x))
    return _square(x)


def _square(x):
    return x * x + x


def _rotate(x):
    return x * HALF + torch.div(x, HALF, rounding_mode="floor")


def _dropout(draws, x, p, train=True):
    if train is False or p == 0:
        return x.clone(), torch.ones_like(x, dtype=torch.bool)
    mask = draws.keep(x.shape, 1 - p)
    return x * mask * (0.0 if p == 1 else 1 / (1 - p)), mask


def _dtype(kwargs):
    return kwargs.get("dtype") or torch.get_default_dtype()


DRAWS = {
    aten.native_dropout.default: _dropout,
    aten.rand.default: lambda draws, size, **kw: draws.uniform(size, _dtype(kw)),
    aten.rand_like.default: lambda draws, x, **kw: draws.uniform(x.shape, kw.get("dtype") or x.dtype),
    aten.randn.default: lambda draws, size, **kw: draws.normal(size, _dtype(kw)),
    aten.randn_like.default: lambda draws, x, **kw: draws.normal(x.shape, kw.get("dtype") or x.dtype),
    aten.bernoulli.default: lambda draws, p: (draws.uniform(p.shape, p.dtype) < p).to(p.dtype),
    aten.bernoulli.p: lambda draws, x, p: draws.keep(x.shape, p).to(x.dtype),
    aten.bernoulli_.float: lambda draws, x, p=0.5: x.copy_(draws.keep(x.shape, p)),
    aten.uniform_.default: lambda draws, x, low=0.0, high=1.0: x.copy_(
        draws.uniform(x.shape, x.dtype) * (high - low) + low),
    aten.normal_.default: lambda draws, x, mean=0.0, std=1.0: x.copy_(draws.normal(x.shape, x.dtype) * std + mean),
    aten.exponential_.default: lambda draws, x, rate=1.0: x.copy_(
        torch.log(draws.uniform(x.shape, x.dtype) + 2.0 ** -(BITS + 1)) * (-1 / rate)),
    aten.randint.low: lambda draws, low, high, size, **kw: _whole(draws, low, high, size),
    aten.randint.default: lambda draws, high, size, **kw: _whole(draws, 0, high, size),
}


def _whole(draws, low, high, size):
    scaled = draws.bits(size) * (high - low)
    return torch.div(scaled, 1 << BITS, rounding_mode="floor") + low
