"""Names that mean the same memory."""

import torch
from torch import nn

from .net import WIDTH, Net, odd, weight

SHARES = "memory of the parameter first.weight.*clone"


class _Old(Net):
    def more(self):
        self.register_buffer("old", torch.eye(WIDTH))

    def odd(self, h):
        h = h + h @ self.old
        self.old = self.keep(self.first.weight)
        return h


@odd(capture=SHARES)
class AliasWritten(_Old):
    def keep(self, weight):
        return weight.detach()


@odd(capture=SHARES)
class AliasTransposed(_Old):
    def keep(self, weight):
        return weight.detach().t()


@odd(capture=SHARES)
class AliasOfData(_Old):
    def keep(self, weight):
        return weight.data.view(-1).view(WIDTH, WIDTH)


@odd
class AliasCloned(_Old):
    def keep(self, weight):
        return weight.detach().clone()


@odd
class AliasTimesOne(_Old):
    def keep(self, weight):
        return weight.detach() * 1


@odd(capture="row.*memory of the parameter first.weight")
class AliasOfARow(Net):
    def more(self):
        self.register_buffer("row", torch.zeros(WIDTH))

    def odd(self, h):
        h = h + self.row
        self.row = self.first.weight.detach()[2]
        return h


@odd(capture="old.*memory of the parameter first.weight")
class AliasRegistered(Net):
    def more(self):
        self.register_buffer("old", self.first.weight.detach())

    def odd(self, h):
        return h @ self.old


@odd(capture="part.*memory of the parameter first.weight")
class AliasOfHalf(Net):
    def more(self):
        self.register_buffer("part", self.first.weight.detach()[:, ::2])

    def odd(self, h):
        return h + (h @ self.part).repeat(1, 2)


@odd
class AliasOfBatch(Net):
    def more(self):
        self.register_buffer("seen", torch.zeros(4, WIDTH))

    def forward(self, x, y, ids):
        h = self.begin(x + 0.1 * self.seen)
        self.seen = x
        return self.cost(self.last(h), y)


@odd
class AliasUnread(Net):
    """Two buffers take one value; nobody writes to it in place."""

    def more(self):
        self.register_buffer("a", torch.zeros(WIDTH))
        self.register_buffer("b", torch.ones(WIDTH))

    def odd(self, h):
        out = h + self.a * self.b
        self.a = self.b = h.detach().mean(0)
        return out


@odd(capture="^a: .*memory of the buffer b.* written in place.*clone")
class AliasOfBufferWritten(Net):
    def more(self):
        self.register_buffer("a", torch.zeros(WIDTH))
        self.register_buffer("b", torch.ones(WIDTH))

    def odd(self, h):
        self.b.add_(h.detach().mean(0))
        out = h + self.a
        self.a = self.b
        return out


@odd
class SwappedBuffers(Net):
    def more(self):
        self.register_buffer("a", torch.zeros(WIDTH))
        self.register_buffer("b", torch.ones(WIDTH))

    def odd(self, h):
        self.a, self.b = self.b, self.a
        return h + self.a


@odd
class RegisteredTwice(Net):
    def more(self):
        shared = torch.zeros(WIDTH)
        self.register_buffer("a", shared)
        self.register_buffer("b", shared)

    def odd(self, h):
        self.a.add_(h.detach().mean(0))
        return h + self.b


@odd(capture="a and b are one tensor")
class RegisteredTwiceParted(Net):
    def more(self):
        shared = torch.zeros(WIDTH)
        self.register_buffer("a", shared)
        self.register_buffer("b", shared)

    def odd(self, h):
        self.a = self.a + h.detach().mean(0)
        return h + self.b + self.a


@odd
class TwoRowsOfOneStorage(Net):
    def more(self):
        both = torch.zeros(2, WIDTH)
        self.register_buffer("a", both[0])
        self.register_buffer("b", both[1])

    def odd(self, h):
        self.a.add_(h.detach().mean(0))
        return h + self.a + self.b


@odd(capture="row.*memory of the buffer all")
class OverlappingBuffers(Net):
    def more(self):
        self.register_buffer("all", torch.zeros(2, WIDTH))
        self.register_buffer("row", self.all[0])

    def odd(self, h):
        self.row.add_(h.detach().mean(0))
        return h + self.all.sum(0)


@odd(capture="v.*memory of the parameter w")
class ParameterOfParameter(Net):
    def more(self):
        self.w = weight(WIDTH)
        self.v = nn.Parameter(self.w.data)

    def odd(self, h):
        return h * self.w + self.v


@odd
class FlatParameters(Net):
    def more(self):
        flat = torch.randn(2 * WIDTH)
        self.w, self.v = nn.Parameter(flat[:WIDTH]), nn.Parameter(flat[WIDTH:])

    def odd(self, h):
        return h * self.w + self.v


@odd
class InterleavedParameters(Net):
    def more(self):
        flat = torch.randn(2 * WIDTH)
        self.w, self.v = nn.Parameter(flat[::2]), nn.Parameter(flat[1::2])

    def odd(self, h):
        return h * self.w + self.v


@odd(capture="memory of the parameter first.weight")
class ViewInAttribute(Net):
    def more(self):
        self.view = self.first.weight.view(-1)

    def odd(self, h):
        return h + self.view[:WIDTH]


@odd(capture="memory of the parameter first.weight")
class DetachedInAttribute(Net):
    def more(self):
        self.seen = self.first.weight.detach()

    def odd(self, h):
        return h @ self.seen


@odd(capture="memory of the parameter first.weight")
class DetachedInList(Net):
    def more(self):
        self.views = [self.first.weight.detach()[0]]

    def odd(self, h):
        return h + self.views[0]


@odd(capture="^some: .*memory of the buffer n")
class BufferViewInAttribute(Net):
    def more(self):
        self.register_buffer("n", torch.zeros(WIDTH))
        self.some = self.n[:4]

    def odd(self, h):
        self.n.add_(1)
        return h + self.some.repeat(2)


@odd
class ConstantInAttribute(Net):
    def more(self):
        self.c = torch.randn(WIDTH)

    def odd(self, h):
        return h * self.c


@odd(capture="^c: forward changes it.*constant.*register_buffer")
class ConstantWritten(Net):
    def more(self):
        self.c = torch.ones(WIDTH)

    def odd(self, h):
        self.c.add_(1)
        return h * self.c


@odd(capture="^c: forward changes it.*constant.*register_buffer")
class ConstantTakesValues(Net):
    def more(self):
        self.c = torch.ones(WIDTH)

    def odd(self, h):
        out = h + self.c
        self.c.copy_(h.detach().mean(0))
        return out


@odd
class AliasOfFrozen(Net):
    def more(self):
        self.frozen = nn.Parameter(torch.randn(WIDTH), requires_grad=False)
        self.c = self.frozen.data

    def odd(self, h):
        return h * self.c + self.frozen


@odd(capture="^old: .*memory of the parameter first.weight")
class ParameterAsBuffer(Net):
    def more(self):
        self.register_buffer("old", self.first.weight)

    def odd(self, h):
        return h @ self.old


@odd(capture="^scaled: .*computed from other tensors.*forward")
class StaleGraph(Net):
    """PyTorch sends gradients through it to the parameter it was computed from, step after step."""

    def more(self):
        self.scaled = self.first.weight[0] * 2

    def odd(self, h):
        return h + self.scaled


@odd(capture="^scaled: .*computed from other tensors.*forward")
class StaleGraphInBuffer(Net):
    def more(self):
        self.register_buffer("scaled", self.first.weight[0] * 2)

    def odd(self, h):
        return h + self.scaled


@odd
class DataWritten(Net):
    """VQ-VAE's way to keep a codebook."""

    def more(self):
        self.register_buffer("codes", torch.randn(WIDTH))

    def odd(self, h):
        out = h + self.codes
        self.codes.data.mul_(0.9).add_(0.1 * h.detach().mean(0))
        return out


@odd
class DataInForward(Net):
    def odd(self, h):
        return h @ self.first.weight.data + h @ self.first.weight.detach().t()
