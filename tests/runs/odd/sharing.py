"""Parameters: shared, tied, in containers, frozen, without gradient, of unusual kinds."""

import torch
from torch import nn
from torch.nn import functional as F

from .net import TOKENS, WIDTH, Net, odd, weight


@odd
class ModuleTwice(Net):
    def odd(self, h):
        return self.first(torch.tanh(self.first(h)))


@odd
class ModuleUnderTwoNames(Net):
    def more(self):
        self.again = self.first

    def odd(self, h):
        return self.again(h)


@odd
class TiedWeights(Net):
    def more(self):
        self.last.weight = self.first.weight


@odd
class TiedTransposed(Net):
    def odd(self, h):
        return F.linear(h, self.first.weight.t())


@odd
class TiedEmbedding(Net):
    def more(self):
        self.table = nn.Embedding(TOKENS, WIDTH)

    def forward(self, x, y, ids):
        h = self.begin(x + self.table(ids[:, 0]))
        return F.cross_entropy(self.last(h) @ self.table.weight.t(), ids[:, 1]) + y.mean() * 0


@odd
class SharedGradient(Net):
    def more(self):
        self.p, self.q = weight(WIDTH), weight(WIDTH)

    def odd(self, h):
        return h * (self.p + self.q)


@odd
class SharedByThree(Net):
    def more(self):
        self.p, self.q, self.r = weight(WIDTH, WIDTH), weight(WIDTH, WIDTH), weight(WIDTH, WIDTH)

    def odd(self, h):
        return h @ (self.p + self.q + self.r)


@odd
class SharedTransposed(Net):
    def more(self):
        self.p, self.q = weight(WIDTH, WIDTH), weight(WIDTH, WIDTH)

    def odd(self, h):
        return h @ (self.p + self.q.t())


@odd
class SharedReshaped(Net):
    def more(self):
        self.p, self.q = weight(WIDTH, WIDTH), weight(WIDTH * WIDTH)

    def odd(self, h):
        return h @ (self.p + self.q.view(WIDTH, WIDTH))


@odd
class SharedRow(Net):
    """One gradient is a slice of another."""

    def more(self):
        self.p, self.q = weight(WIDTH, WIDTH), weight(2, WIDTH)

    def odd(self, h):
        return h @ (self.p + torch.cat([self.q, torch.zeros(WIDTH - 2, WIDTH)]))


@odd
class SharedNegative(Net):
    def more(self):
        self.p, self.q = weight(WIDTH), weight(WIDTH)

    def odd(self, h):
        return h * (self.p - self.q)


@odd
class InAList(Net):
    def more(self):
        self.scales = nn.ParameterList([weight(WIDTH), weight(1, WIDTH), weight(1)])

    def odd(self, h):
        for scale in self.scales:
            h = h * scale
        return h


@odd
class InADict(Net):
    def more(self):
        self.scales = nn.ParameterDict({"b": weight(WIDTH), "a": weight(WIDTH)})

    def odd(self, h):
        return h * self.scales["a"] + self.scales["b"]


@odd
class TiedInAList(Net):
    def more(self):
        shared = weight(WIDTH)
        self.scales = nn.ParameterList([shared, shared, weight(WIDTH)])

    def odd(self, h):
        return h * self.scales[0] + self.scales[1] * self.scales[2]


@odd
class BackwardsThroughAList(Net):
    def more(self):
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(3))

    def odd(self, h):
        for layer in reversed(self.layers):
            h = torch.tanh(layer(h))
        return self.layers[0](h)


@odd
class NotRegistered(Net):
    """A parameter in a plain list is nobody's: it stays as it was made."""

    def more(self):
        self.hidden = [weight(WIDTH)]

    def odd(self, h):
        return h * self.hidden[0]


@odd
class Frozen(Net):
    def more(self):
        self.first.requires_grad_(False)


@odd
class FrozenBias(Net):
    def more(self):
        self.first.bias.requires_grad_(False)
        self.p = nn.Parameter(torch.randn(WIDTH), requires_grad=False)

    def odd(self, h):
        return h + self.p


@odd
class WholeNumbers(Net):
    def more(self):
        self.order = nn.Parameter(torch.randperm(WIDTH), requires_grad=False)

    def odd(self, h):
        return h[:, self.order]


@odd
class Unused(Net):
    def more(self):
        self.p, self.part = weight(5), nn.Linear(3, 3)


@odd
class UsedDetached(Net):
    def more(self):
        self.p = weight(WIDTH)

    def odd(self, h):
        return h + self.p.detach()


@odd
class TimesZero(Net):
    def more(self):
        self.p = weight(WIDTH)

    def odd(self, h):
        return h + 0 * self.p


@odd
class Scalars(Net):
    def more(self):
        self.p, self.q = nn.Parameter(torch.tensor(0.5)), nn.Parameter(torch.tensor([0.3]))

    def odd(self, h):
        return h * self.p + self.q


@odd
class Empty(Net):
    def more(self):
        self.p = nn.Parameter(torch.zeros(0, WIDTH))

    def odd(self, h):
        return h + self.p.sum(0)


@odd
class OfOneElement(Net):
    def more(self):
        self.p = weight(1, 1, 1)

    def odd(self, h):
        return h + self.p.squeeze()


@odd(capture="^p: it is complex.*view_as_complex")
class Complex(Net):
    def more(self):
        self.p = nn.Parameter(torch.randn(WIDTH, dtype=torch.complex128))

    def odd(self, h):
        return (h * self.p).abs()


@odd
class ToggledView(Net):
    """A leaf of its own inside of forward gets the gradient, and the parameter none."""

    def more(self):
        self.p = weight(WIDTH)

    def odd(self, h):
        view = self.p.detach().view(1, WIDTH).requires_grad_()
        return h * view + self.p


@odd
class HalfFrozen(Net):
    def odd(self, h):
        keep = torch.ones(WIDTH, 1)
        keep[:4] = 0
        w = self.first.weight
        return F.linear(h, w * keep + (w * (1 - keep)).detach())


@odd
class MixedDtypes(Net):
    def more(self):
        self.p = nn.Parameter(torch.randn(WIDTH, dtype=torch.float64))
        self.small = nn.Parameter(torch.randn(WIDTH, dtype=torch.float32), requires_grad=False)

    def odd(self, h):
        return h * self.p + self.small


@odd
class NotDivisible(Net):
    def more(self):
        self.thin, self.wide = nn.Linear(WIDTH, 5), nn.Linear(5, WIDTH)

    def odd(self, h):
        return self.wide(torch.tanh(self.thin(h)))


@odd
class NormOfOne(Net):
    """The gradient of a norm at one parameter only, of another through the batch."""

    def more(self):
        self.p, self.norm = weight(WIDTH), nn.LayerNorm(WIDTH)

    def odd(self, h):
        return self.norm(h) * self.p / self.p.norm()
