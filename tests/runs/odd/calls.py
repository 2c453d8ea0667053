"""Calls of forward that differ from the first two, or by something outside of the module's attributes."""

import itertools
import random

import numpy
import torch

from .attributes import OTHER
from .net import WIDTH, Net, odd

LOOKS = "changes this in every call and looks at it.*register_buffer, or count in the training loop"
OUTSIDE = f"{OTHER}.*outside of the module's attributes"


@odd(capture=f"^n: .*{LOOKS}")
class ThirdCallDiffers(Net):
    def more(self):
        self.n = 0

    def odd(self, h):
        self.n += 1
        return h * 2 if self.n > 2 else h


@odd(capture=f"^n: .*{LOOKS}")
class FiftiethCallDiffers(Net):
    def more(self):
        self.n = 0

    def odd(self, h):
        self.n += 1
        return h * 2 if self.n > 50 else h


@odd(capture=f"^seen: .*{LOOKS}")
class CountsItsList(Net):
    def more(self):
        self.seen = []

    def odd(self, h):
        self.seen.append(h.detach().mean())
        return h * 2 if len(self.seen) > 50 else h


@odd(capture=f"^temperature: .*{LOOKS}")
class Anneals(Net):
    """Even where no op reads it yet."""

    def more(self):
        self.temperature = 1.0

    def odd(self, h):
        self.temperature = max(0.5, self.temperature * 0.9)
        return h


@odd(capture=f"^calls: .*{LOOKS}")
class CountsInADict(Net):
    def more(self):
        self.calls = {"all": 0}

    def odd(self, h):
        self.calls["all"] += 1
        return h.sin() if self.calls["all"] % 100 == 0 else h


@odd
class CountsForLooking(Net):
    def more(self):
        self.n, self.rate, self.stats = 0, 1.0, {"calls": 0}

    def odd(self, h):
        self.n += 1
        self.rate = self.rate * 0.5 + 1
        self.stats["calls"] += 1
        self.stats["last"] = h.detach()
        self.line = f"call {self.n}"
        return h


CALLS = [0]


@odd(capture=OUTSIDE)
class CountsInAGlobal(Net):
    def odd(self, h):
        CALLS[0] += 1
        return h * CALLS[0]


@odd(capture=OUTSIDE)
class TakesTurnsByAGlobal(Net):
    def odd(self, h):
        CALLS[0] += 1
        return h.sin() if CALLS[0] % 2 else h


@odd(capture=OUTSIDE)
class CountsInItsClass(Net):
    calls = 0

    def odd(self, h):
        type(self).calls += 1
        return h * self.calls


@odd(capture=OUTSIDE)
class CountsByAnIterator(Net):
    def more(self):
        self.count = itertools.count(1)

    def odd(self, h):
        return h * next(self.count)


@odd(capture=OUTSIDE)
class CountsInAnObject(Net):
    def more(self):
        self.state = {"inside": [0]}

    def odd(self, h):
        self.state["inside"][0] += 1
        return h * self.state["inside"][0]


@odd(capture=OUTSIDE)
class DrawsWithPython(Net):
    def odd(self, h):
        return h * random.random()


@odd(capture=OUTSIDE)
class DrawsWithNumpy(Net):
    def odd(self, h):
        return h * torch.from_numpy(numpy.random.rand(WIDTH))


@odd
class ReadsAnArray(Net):
    def more(self):
        self.scale = numpy.ones(WIDTH) * 0.5

    def odd(self, h):
        return h * torch.from_numpy(self.scale)


@odd(capture=OTHER)
class EditsAnArray(Net):
    def more(self):
        self.scale = numpy.ones(WIDTH)

    def odd(self, h):
        self.scale *= 0.5
        return h * torch.from_numpy(self.scale)


@odd(capture="^scale: it is an array in the memory of level, .*clone")
class ArrayOfABuffer(Net):
    def more(self):
        self.scale = numpy.ones(WIDTH)
        self.register_buffer("level", torch.from_numpy(self.scale))

    def odd(self, h):
        self.scale *= 0.5
        return h * self.level


@odd(capture="^first.weight: forward puts another parameter in its place")
class NewParameterInForward(Net):
    def odd(self, h):
        self.first.weight = torch.nn.Parameter(self.first.weight.detach() * 0.9)
        return h


@odd(capture="^root: forward seeds torch's random numbers")
class SeedsInForward(Net):
    def odd(self, h):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            return h + torch.rand(WIDTH)
