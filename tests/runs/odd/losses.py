"""Losses that couple rows of the batch, or come in pieces."""

import types

import torch
from torch import nn
from torch.nn import functional as F

from .net import TOKENS, WIDTH, Net, odd


@odd
class SeveralPieces(Net):
    def cost(self, z, y):
        weights = sum(p.square().sum() for p in self.parameters())
        return F.mse_loss(z, y) + 0.5 * F.l1_loss(z, y) + 0.01 * weights + F.smooth_l1_loss(z.mean(0), y.mean(0))


@odd
class SumOfRows(Net):
    def cost(self, z, y):
        return (z - y).square().sum()


@odd
class InAnObject(Net):
    def cost(self, z, y):
        return types.SimpleNamespace(loss=F.mse_loss(z, y))


@odd
class InATuple(Net):
    def cost(self, z, y):
        return F.mse_loss(z, y), z


@odd
class OfWeightsOnly(Net):
    def cost(self, z, y):
        return self.first.weight.square().mean() + self.last.bias.sum().exp() + 0 * z.sum()


@odd
class TwiceTheSameLoss(Net):
    def cost(self, z, y):
        loss = F.mse_loss(z, y)
        return loss + 0.5 * loss


@odd
class ScaledByItself(Net):
    def cost(self, z, y):
        loss = F.mse_loss(z, y)
        return loss / loss.detach() + loss


@odd
class WithOnes(Net):
    """Numbers 1 of the loss's own kind, in forward and backward."""

    def cost(self, z, y):
        one = torch.ones(())
        return F.mse_loss(z, y) * one + torch.full((), 1.0) * z.mean()


@odd
class LossIsASum(Net):
    """Its gradient is 1 at every place, expanded."""

    def cost(self, z, y):
        return z.sum()


@odd
class LossIsAView(Net):
    def cost(self, z, y):
        return F.mse_loss(z, y, reduction="none").mean(0, keepdim=True).mean(1).squeeze().view(())


@odd
class TargetOfItsOwn(Net):
    def cost(self, z, y):
        return F.mse_loss(z, (z + y).detach() * 0.5)


@odd
class LargestRow(Net):
    def cost(self, z, y):
        return (z - y).square().mean(1).max()


@odd
class HardestRows(Net):
    def cost(self, z, y):
        return (z - y).square().mean(1).topk(2).values.mean()


@odd
class SortedValues(Net):
    def odd(self, h):
        values, order = h.sort(1)
        return values + order.to(h.dtype) * 0.1

    def cost(self, z, y):
        return F.mse_loss(z.sort(0).values, y.sort(0).values)


@odd
class LogSumExpOverRows(Net):
    def cost(self, z, y):
        return torch.logsumexp(z - y, 0).mean()


@odd
class MedianOfRows(Net):
    def cost(self, z, y):
        return (z - y).square().mean(1).median() + (z - y).kthvalue(2, 1).values.mean()


@odd
class CumulativeSums(Net):
    def odd(self, h):
        return h.cumsum(1) + 0.1 * h.cumprod(1) + h.cummax(1).values + h.logcumsumexp(1)


@odd
class CumulativeOverRows(Net):
    def odd(self, h):
        return h.cumsum(0) * 0.5


@odd
class Contrastive(Net):
    def cost(self, z, y):
        logits = F.normalize(z, dim=1) @ F.normalize(y, dim=1).t()
        return F.cross_entropy(logits / 0.2, torch.arange(z.shape[0]))


@odd
class VarianceOfRows(Net):
    def cost(self, z, y):
        return F.mse_loss(z, y) + F.relu(1 - z.var(0)).mean() + (z - z.mean(0)).t().matmul(z).square().mean()


@odd
class WeightedByCounts(Net):
    def forward(self, x, y, ids):
        h = self.begin(x)
        keep = (ids > 3).to(h.dtype)
        return ((self.last(h) - y).square().mean(1, keepdim=True) * keep).sum() / keep.sum().clamp(min=1)


@odd
class CrossEntropyIgnoring(Net):
    def forward(self, x, y, ids):
        labels = torch.where(ids[:, 0] < WIDTH, ids[:, 0], -100)
        return F.cross_entropy(self.last(self.begin(x)), labels) + 0 * y.sum()


@odd
class ScatteredEmbedding(Net):
    def more(self):
        self.table = nn.Embedding(TOKENS, WIDTH)

    def forward(self, x, y, ids):
        sums = x.new_zeros(TOKENS, WIDTH).index_add(0, ids.flatten(), self.table(ids).flatten(0, 1))
        return self.cost(self.last(self.begin(x) + sums[ids[:, 0]]), y)


@odd
class BagsOfEmbeddings(Net):
    def more(self):
        self.bag = nn.EmbeddingBag(TOKENS, WIDTH, mode="mean")

    def forward(self, x, y, ids):
        return self.cost(self.last(self.begin(x) + self.bag(ids)), y)


@odd
class PaddedEmbedding(Net):
    def more(self):
        self.table = nn.Embedding(TOKENS, WIDTH, padding_idx=0, scale_grad_by_freq=False)

    def forward(self, x, y, ids):
        return self.cost(self.last(self.begin(x) + self.table(ids % 3).sum(1)), y)


@odd(capture="^table.weight: its gradient is a sparse tensor.*sparse=False")
class SparseEmbedding(Net):
    def more(self):
        self.table = nn.Embedding(TOKENS, WIDTH, sparse=True)

    def forward(self, x, y, ids):
        return self.cost(self.last(self.begin(x + self.table(ids).sum(1))), y)


@odd
class EmbeddingByFrequency(Net):
    def more(self):
        self.table = nn.Embedding(TOKENS, WIDTH, scale_grad_by_freq=True)

    def forward(self, x, y, ids):
        return self.cost(self.last(self.begin(x) + self.table(ids).sum(1)), y)


@odd
class GathersTheLargest(Net):
    def odd(self, h):
        return h + h.gather(1, h.argmax(1, keepdim=True)) * h.amax(1, keepdim=True) + h.prod(1, keepdim=True)


@odd
class RolledRows(Net):
    def odd(self, h):
        return h + h.roll(1, 0) + h.flip(0)


@odd
class EveryOtherRow(Net):
    def cost(self, z, y):
        return F.mse_loss(z[::2], y[1::2])


@odd
class Recurrent(Net):
    def more(self):
        self.cell = nn.GRUCell(WIDTH, WIDTH)

    def odd(self, h):
        state = torch.zeros_like(h)
        for _ in range(3):
            state = self.cell(h, state)
        return state


@odd
class Convolved(Net):
    def more(self):
        self.layer = nn.Conv1d(2, 2, 3, padding=1, groups=2)

    def odd(self, h):
        return F.max_pool1d(self.layer(h.view(-1, 2, 4)), 1).flatten(1)


@odd
class Attends(Net):
    def more(self):
        self.layer = nn.MultiheadAttention(4, 2, batch_first=True)

    def odd(self, h):
        return self.layer(*[h.view(-1, 2, 4)] * 3)[0].flatten(1)
