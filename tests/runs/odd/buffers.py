"""Buffers that change from step to step."""

import torch
from torch import nn
from torch.nn import functional as F

from .net import ROWS, TOKENS, WIDTH, Net, odd

BY_DATA = "depend on data"


class _Counts(Net):
    zero = 0.0

    def more(self):
        self.register_buffer("n", torch.tensor(self.zero))

    def odd(self, h):
        self.count()
        return h * (1 + 0.1 * self.n)


@odd
class ScalarCounter(_Counts):
    def count(self):
        self.n.add_(torch.full((), 1.0))


@odd
class ScalarCounterOfOnes(_Counts):
    def count(self):
        self.n.add_(torch.ones_like(self.n))


@odd
class ScalarCounterPlus(_Counts):
    def count(self):
        self.n += 1


@odd
class ScalarCounterAssigned(_Counts):
    def count(self):
        self.n = self.n + 1


@odd
class IntegerCounter(_Counts):
    zero = 0

    def count(self):
        self.n += 1


@odd
class CounterAfterLoss(Net):
    """Counts where backward has nothing to do with it, with the dtype of the loss."""

    def more(self):
        self.register_buffer("n", torch.tensor(0.0))

    def cost(self, z, y):
        loss = F.mse_loss(z, y)
        self.n.add_(torch.ones_like(loss.detach()))
        return loss


@odd
class BoolFlag(Net):
    def more(self):
        self.register_buffer("flag", torch.tensor(False))

    def odd(self, h):
        self.flag.logical_not_()
        return torch.where(self.flag, h, 2 * h)


@odd
class MomentumBuffer(Net):
    def more(self):
        self.register_buffer("m", torch.zeros(WIDTH))

    def odd(self, h):
        self.m.mul_(0.9).add_(h.detach().mean(0), alpha=0.1)
        return h - self.m


@odd
class LerpBuffer(Net):
    def more(self):
        self.register_buffer("m", torch.zeros(WIDTH))

    def odd(self, h):
        with torch.no_grad():
            self.m.lerp_(h.mean(0), 0.1)
        return h - self.m


@odd
class BatchNorm(Net):
    def more(self):
        self.norm = nn.BatchNorm1d(WIDTH)

    def odd(self, h):
        return self.norm(h)


@odd
class BatchNormTwice(BatchNorm):
    def odd(self, h):
        return self.norm(self.norm(h) * 2)


@odd
class BatchNormFrozen(BatchNorm):
    def more(self):
        super().more()
        self.norm.eval()


@odd(capture="^norm: it has momentum=None.*give momentum a number")
class BatchNormCumulative(Net):
    def more(self):
        self.norm = nn.BatchNorm1d(WIDTH, momentum=None)

    def odd(self, h):
        return self.norm(h)


@odd
class InstanceNorm(Net):
    def more(self):
        self.norm = nn.InstanceNorm1d(2, track_running_stats=True, affine=True)

    def odd(self, h):
        return self.norm(h.view(-1, 2, 4)).flatten(1)


@odd
class OwnStatistics(Net):
    def more(self):
        self.register_buffer("mean", torch.zeros(WIDTH))
        self.register_buffer("square", torch.ones(WIDTH))

    def odd(self, h):
        self.mean = 0.9 * self.mean + 0.1 * h.detach().mean(0)
        self.square = 0.9 * self.square + 0.1 * h.detach().var(0, unbiased=False)
        return (h - self.mean) / (self.square + 1e-3).sqrt()


@odd
class Queue(Net):
    """MoCo's memory, moved along by rows of the batch."""

    def more(self):
        self.register_buffer("queue", F.normalize(torch.randn(2 * ROWS, WIDTH), dim=1))

    def odd(self, h):
        keys = F.normalize(h.detach(), dim=1)
        out = h + torch.softmax(h @ self.queue.t(), -1) @ self.queue
        self.queue = torch.cat([keys, self.queue[:-ROWS]])
        return out


@odd
class QueueByIndex(Net):
    def more(self):
        self.register_buffer("queue", torch.randn(2 * ROWS, WIDTH))
        self.register_buffer("at", torch.tensor(0))

    def odd(self, h):
        out = h + (h @ self.queue.clone().t()).mean(1, keepdim=True)
        place = (torch.arange(ROWS) + self.at) % (2 * ROWS)
        self.queue.index_copy_(0, place, h.detach())
        self.at.add_(ROWS).remainder_(2 * ROWS)
        return out


@odd(capture=BY_DATA)
class QueueByPointer(QueueByIndex):
    def odd(self, h):
        at = int(self.at)
        self.queue[at:at + ROWS] = h.detach()
        return h + self.queue.mean(0)


@odd(capture="forward changes the parameter teacher.weight itself")
class TeacherOfParameters(Net):
    def more(self):
        self.teacher = nn.Linear(WIDTH, WIDTH).requires_grad_(False)

    def odd(self, h):
        with torch.no_grad():
            self.teacher.weight.mul_(0.9).add_(self.first.weight, alpha=0.1)
        return h + self.teacher(h)


@odd
class TeacherOfBuffers(Net):
    def more(self):
        self.register_buffer("teacher", self.first.weight.detach().clone())

    def odd(self, h):
        with torch.no_grad():
            self.teacher.mul_(0.9).add_(self.first.weight, alpha=0.1)
        return h + F.linear(h, self.teacher)


@odd
class TeacherAfterUse(Net):
    def more(self):
        self.register_buffer("teacher", self.first.weight.detach().clone())

    def odd(self, h):
        out = h + F.linear(h, self.teacher)
        self.teacher = torch.lerp(self.teacher, self.first.weight.detach(), 0.1)
        return out


@odd
class GradientThroughBuffer(Net):
    def more(self):
        self.register_buffer("state", torch.zeros(WIDTH))

    def odd(self, h):
        state = 0.5 * self.state + h.mean(0)
        self.state = state.detach()
        return h * state


@odd
class BufferInPlaceInGraph(Net):
    """Gradient flows through what stands in the buffer during the step."""

    def more(self):
        self.register_buffer("state", torch.zeros(WIDTH))

    def odd(self, h):
        state = self.state.clone()
        state.add_(h.mean(0))
        self.state.copy_(state.detach())
        return h + state


@odd(capture=r"seen.*\[4, 8\].*\[8\]")
class BufferOtherShape(Net):
    def more(self):
        self.register_buffer("seen", torch.zeros(WIDTH))

    def odd(self, h):
        out = h + self.seen
        self.seen = h.detach()
        return out


@odd(capture="seen.*float32.*float64")
class BufferOtherDtype(Net):
    def more(self):
        self.register_buffer("seen", torch.zeros(WIDTH))

    def odd(self, h):
        out = h + self.seen
        self.seen = h.detach().mean(0).float()
        return out


@odd(capture="seen.*None")
class BufferRemoved(Net):
    def more(self):
        self.register_buffer("seen", torch.zeros(WIDTH))

    def odd(self, h):
        out = h if self.seen is None else h + self.seen
        self.seen = None
        return out


@odd
class KeepsItsLoss(Net):
    def more(self):
        self.register_buffer("last_loss", torch.tensor(1.0))

    def cost(self, z, y):
        loss = F.mse_loss(z, y) / self.last_loss
        self.last_loss = loss.detach()
        return loss


@odd
class NotPersistent(Net):
    def more(self):
        self.register_buffer("m", torch.zeros(WIDTH), persistent=False)

    def odd(self, h):
        self.m.add_(h.detach().sum(0))
        return h + self.m


@odd
class BufferWithGradient(Net):
    def more(self):
        self.register_buffer("b", torch.randn(WIDTH).requires_grad_())

    def odd(self, h):
        return h + self.b * self.b


@odd
class Histogram(Net):
    def more(self):
        self.table = nn.Embedding(TOKENS, WIDTH)
        self.register_buffer("seen", torch.zeros(TOKENS, dtype=torch.int64))

    def forward(self, x, y, ids):
        self.seen.scatter_add_(0, ids.flatten(), torch.ones_like(ids.flatten()))
        h = self.begin(x + self.table(ids).sum(1)) / (1 + self.seen.sum())
        return self.cost(self.last(h), y)


@odd
class BufferFilledByMask(Net):
    def more(self):
        self.register_buffer("m", torch.arange(float(WIDTH)))

    def odd(self, h):
        self.m.masked_fill_(self.m > 4, 1.0)
        self.m[1] += 2
        return h + self.m


@odd
class BufferPuts(Net):
    def more(self):
        self.register_buffer("m", torch.zeros(TOKENS, WIDTH))

    def forward(self, x, y, ids):
        h = self.begin(x)
        self.m.index_put_((ids[:, 0],), h.detach(), accumulate=True)
        return self.cost(self.last(h + self.m[ids[:, 1]]), y)


@odd
class BufferOfTargets(Net):
    def more(self):
        self.register_buffer("mean", torch.zeros(WIDTH))

    def cost(self, z, y):
        self.mean.mul_(0.5).add_(0.5 * y.mean(0))
        return F.mse_loss(z, y - self.mean)


@odd
class LargestSeen(Net):
    def more(self):
        self.register_buffer("largest", torch.tensor(0.0))

    def odd(self, h):
        self.largest = torch.maximum(self.largest, h.detach().abs().max())
        return h / (self.largest + 1)


@odd
class BufferOfGradientNorm(Net):
    """A buffer that only a gradient decides."""

    def more(self):
        self.register_buffer("norm", torch.tensor(1.0))

    def odd(self, h):
        gradient, = torch.autograd.grad(h.square().sum(), h, retain_graph=True)
        self.norm = gradient.norm().detach()
        return h / self.norm


@odd(capture="forward assigns its .data")
class BufferDataAssigned(Net):
    def more(self):
        self.register_buffer("seen", torch.ones(WIDTH))

    def odd(self, h):
        self.seen.data = self.seen.data * 0.5
        return h * self.seen


@odd(capture="first.weight.*forward assigns its .data")
class WeightNormalisedInForward(Net):
    def odd(self, h):
        self.first.weight.data = torch.nn.functional.normalize(self.first.weight.data, dim=1)
        return h
