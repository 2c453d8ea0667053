"""Views, with and without rows, and changes in place through them."""

import torch
from torch import nn
from torch.nn import functional as F

from .net import WIDTH, Net, odd, weight


@odd
class DiagonalOfAGradient(Net):
    def more(self):
        self.p, self.q = weight(WIDTH, WIDTH), weight(WIDTH)

    def odd(self, h):
        return h @ (self.p + torch.diag_embed(self.q))


@odd
class Diagonal(Net):
    def more(self):
        self.p = weight(WIDTH, WIDTH)

    def odd(self, h):
        return h * torch.diagonal(self.p) + h @ self.p


@odd
class DiagonalOfTheBatch(Net):
    def odd(self, h):
        return h + torch.diagonal(h.unsqueeze(2) * h.unsqueeze(1), dim1=1, dim2=2)


@odd
class Strided(Net):
    def more(self):
        self.p = weight(2 * WIDTH)

    def odd(self, h):
        return h @ self.p.as_strided((WIDTH, WIDTH), (1, 1))


@odd
class StridedShared(Net):
    """The gradient of one parameter is a strided view of that of another."""

    def more(self):
        self.p, self.q = weight(WIDTH, WIDTH), weight(WIDTH)

    def odd(self, h):
        return h @ (self.p + torch.zeros(WIDTH, WIDTH).as_strided_scatter(self.q, (WIDTH,), (WIDTH + 1,)))


@odd
class Unfolded(Net):
    def odd(self, h):
        return F.pad(h, (1, 1)).unfold(1, 3, 1).mean(2)


@odd
class ComplexViews(Net):
    def odd(self, h):
        z = torch.view_as_complex(h.reshape(-1, 4, 2))
        return torch.view_as_real(z * z.conj() + z).flatten(1)


@odd
class ComplexGradients(Net):
    """A parameter whose gradient is a real view of a complex one."""

    def more(self):
        self.p, self.q = weight(4, 2), weight(4, 2)

    def odd(self, h):
        turn = torch.view_as_complex(self.p) + torch.view_as_complex(self.q)
        return torch.view_as_real(torch.view_as_complex(h.reshape(-1, 4, 2)) * turn).flatten(1)


@odd
class RealAndImaginary(Net):
    def odd(self, h):
        z = torch.complex(h, h.flip(1))
        return (z * z).real + z.exp().imag


@odd
class Fourier(Net):
    def odd(self, h):
        return torch.fft.fft(h).real


@odd
class Conjugated(Net):
    def more(self):
        self.p = weight(WIDTH)

    def odd(self, h):
        z = torch.complex(h, h * self.p)
        return (z @ z.conj().t()).abs() @ h


@odd
class Expanded(Net):
    def more(self):
        self.p = weight(1)

    def odd(self, h):
        return h * self.p.expand(WIDTH) + self.p.expand(h.shape[0], WIDTH)


@odd
class ExpandedGradient(Net):
    """The gradient of the sum is one number, expanded."""

    def more(self):
        self.p, self.q = weight(WIDTH, WIDTH), weight(WIDTH, WIDTH)

    def cost(self, z, y):
        return F.mse_loss(z, y) + 0.1 * self.p.sum() + 0.1 * (self.p + self.q).sum()


@odd
class Moved(Net):
    def odd(self, h):
        return h.view(-1, 2, 4).movedim(1, 2).transpose(1, 2).permute(0, 2, 1).flatten(1).unflatten(1, (4, 2)).mT.flatten(1)


@odd
class Pieces(Net):
    def odd(self, h):
        a, b = h.chunk(2, 1)
        c, d, e = h.split([2, 2, 4], 1)
        return torch.cat([a * b, torch.stack(h.unbind(1)[:4], 1) + torch.cat([d, c], 1) * e], 1)


@odd
class Selected(Net):
    def odd(self, h):
        return h + h[:, 3:4] + h.select(1, 2).unsqueeze(1) + h.narrow(1, 1, 1) + h[:, ::2].repeat(1, 2)


@odd
class OnlyAsView(Net):
    def more(self):
        self.p = weight(WIDTH * WIDTH)

    def odd(self, h):
        return h @ self.p.view(WIDTH, WIDTH).t()


@odd
class TwoViewsOfOne(Net):
    def more(self):
        self.p = weight(2, WIDTH)

    def odd(self, h):
        scale, shift = self.p
        return h * scale + shift


@odd
class PartOfAParameter(Net):
    def more(self):
        self.p = weight(2 * WIDTH, WIDTH)

    def odd(self, h):
        return h @ self.p[3:3 + WIDTH]


@odd
class LaidOutByColumns(Net):
    def more(self):
        self.p = nn.Parameter(torch.randn(WIDTH, WIDTH).t() * 0.5)

    def odd(self, h):
        return h @ self.p


@odd
class Bits(Net):
    """The same bits as whole numbers."""

    def odd(self, h):
        sign = (h.detach().view(torch.int64) >> 63).to(h.dtype)
        return h * (1 + sign)


@odd
class ChainInPlace(Net):
    def odd(self, h):
        h = h.clone()
        h.add_(1).mul_(0.5).tanh_()
        return h.clone().sub_(h.detach().mean(1, keepdim=True)).abs_()


@odd
class ChainOnActivation(Net):
    def odd(self, h):
        h = h * 2
        h += 1
        h *= self.last.bias
        return F.relu_(h)


@odd
class SlicesInPlace(Net):
    def odd(self, h):
        z = torch.zeros_like(h)
        z[:, :4] = h[:, 4:]
        z[:, 4:] += 2 * h[:, :4]
        z[:, ::2] *= h[:, 1::2]
        return z


@odd
class ViewsInPlace(Net):
    def odd(self, h):
        z = h * 1
        z.view(-1, 2, 4)[:, 0].mul_(3)
        z.t()[1].add_(1)
        return z + h


@odd
class DiagonalInPlace(Net):
    def more(self):
        self.p = weight(WIDTH, WIDTH)

    def odd(self, h):
        p = self.p.clone()
        p.diagonal().fill_(1.0)
        return h @ p


@odd
class MaskedFill(Net):
    def odd(self, h):
        z = h.clone()
        z.masked_fill_(h < 0, 0.25)
        z[h > 0.9] = 0.5
        return z


@odd
class PutsAccumulating(Net):
    def forward(self, x, y, ids):
        h = self.begin(x)
        z = h.new_zeros(12, WIDTH).index_put((ids[:, 0],), h, accumulate=True)
        return self.cost(self.last(h + z[ids[:, 0]]), y)


@odd
class ScattersColumns(Net):
    def odd(self, h):
        at = torch.tensor([0, 0, 1, 2, 3, 5, 5, 7])
        z = torch.zeros_like(h).index_add_(1, at, h)
        return z.scatter_(1, h.new_zeros(h.shape[0], 1, dtype=torch.int64), 0.5)


@odd
class BatchInPlace(Net):
    """Changes what it was given."""

    def forward(self, x, y, ids):
        x.mul_(0.5)
        y.add_(1)
        return super().forward(x, y, ids)


@odd
class SwapsColumns(Net):
    def odd(self, h):
        z = h.clone()
        z[:, [0, 1]] = z[:, [1, 0]]
        return z


@odd
class OverlappingSum(Net):
    def odd(self, h):
        z = h.clone()
        z[:, 1:] += h[:, :-1]
        return z[:, 1:].sum(1, keepdim=True) + z
