"""What forward keeps in plain attributes."""

import torch

from .net import WIDTH, Net, odd

OTHER = "later call of forward"


@odd(capture=rf"n\b.*{OTHER}")
class PythonCounter(Net):
    def more(self):
        self.n = 0

    def odd(self, h):
        self.n += 1
        return h / self.n


@odd
class PythonCounterUnused(Net):
    def more(self):
        self.n = 0

    def odd(self, h):
        self.n += 1
        return h


@odd(capture=rf"flip\b.*{OTHER}")
class TakesTurns(Net):
    def more(self):
        self.flip = False

    def odd(self, h):
        self.flip = not self.flip
        return h.sin() if self.flip else h


@odd(capture=rf"last_seen\b.*{OTHER}")
class KeepsLast(Net):
    def more(self):
        self.last_seen = None

    def odd(self, h):
        out = h if self.last_seen is None else h + self.last_seen
        self.last_seen = h.detach().mean(0)
        return out


@odd(capture=rf"last_seen\b.*{OTHER}")
class KeepsLastFromZeros(Net):
    def more(self):
        self.last_seen = torch.zeros(WIDTH)

    def odd(self, h):
        out = h + self.last_seen
        self.last_seen = h.detach().mean(0)
        return out


@odd
class KeepsForLooking(Net):
    def odd(self, h):
        self.attention = torch.softmax(h, -1)
        return h * self.attention


@odd
class AppendsForLooking(Net):
    def more(self):
        self.seen = []

    def odd(self, h):
        self.seen.append(h.detach().mean())
        return h


@odd(capture=rf"seen\b.*{OTHER}")
class AppendsAndReads(Net):
    def more(self):
        self.seen = []

    def odd(self, h):
        self.seen.append(h.detach().mean())
        return h + torch.stack(self.seen).sum()


@odd(capture=rf"(cache|_buffers)\b.*{OTHER}")
class LazyBuffer(Net):
    def more(self):
        self.register_buffer("cache", None)

    def odd(self, h):
        if self.cache is None:
            self.cache = torch.zeros(WIDTH)
        self.cache.add_(h.detach().mean(0))
        return h + self.cache


@odd(capture=rf"(cache|_buffers)\b.*{OTHER}")
class BufferRegisteredInForward(Net):
    def odd(self, h):
        if not hasattr(self, "cache"):
            self.register_buffer("cache", h.detach().mean(0))
        return h + self.cache


@odd
class LazyConstant(Net):
    def more(self):
        self.scale = None

    def odd(self, h):
        if self.scale is None:
            self.scale = 0.5
        return h * self.scale


class _Inner(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, h):
        self.calls += 1
        return h * self.calls


@odd(capture=rf"inner.calls\b.*{OTHER}")
class CounterInAPart(Net):
    def more(self):
        self.inner = _Inner()

    def odd(self, h):
        return self.inner(h)


@odd
class LazyTable(Net):
    """A table that no input leads to, made once."""

    def more(self):
        self.tables = {}

    def odd(self, h):
        if WIDTH not in self.tables:
            self.tables[WIDTH] = torch.arange(WIDTH) * 0.1 + 1
        return h * self.tables[WIDTH]


@odd(capture=rf"turn\b.*{OTHER}")
class TableThatGrows(Net):
    """No input leads to it, and it is another one in every call."""

    def more(self):
        self.turn = None

    def odd(self, h):
        self.turn = torch.ones(WIDTH) if self.turn is None else self.turn + 1
        return h * self.turn


@odd(capture=rf"turn\b.*{OTHER}")
class TensorCounter(Net):
    def more(self):
        self.turn = torch.zeros(())

    def odd(self, h):
        self.turn = self.turn + 1
        return h / self.turn
