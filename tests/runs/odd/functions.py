"""Functions and hooks that reach into autograd."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations, parametrize, prune
from torch.utils.checkpoint import checkpoint

from .net import WIDTH, Net, odd, weight


class _Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, gradient):
        x, = ctx.saved_tensors
        return 3 * gradient * x  # not the derivative, to see that it is this one


@odd
class CustomFunction(Net):
    def odd(self, h):
        return _Square.apply(h)


class _Reversed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return -ctx.scale * gradient, None


@odd
class GradientReversal(Net):
    def odd(self, h):
        return _Reversed.apply(h, 0.5) + h


class _NoGradientForOne(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.saved_tensors[1], None


@odd
class GivesNoGradient(Net):
    def more(self):
        self.p = weight(WIDTH)

    def odd(self, h):
        return _NoGradientForOne.apply(h, self.p)


class _OneForTwo(torch.autograd.Function):
    """Gives one tensor as the gradient of both."""

    @staticmethod
    def forward(ctx, x, w):
        return x + w

    @staticmethod
    def backward(ctx, gradient):
        both = gradient.sum(0)
        return both.expand_as(gradient), both


@odd
class GivesOneGradientTwice(Net):
    def more(self):
        self.p, self.q = weight(WIDTH), weight(WIDTH)

    def odd(self, h):
        return _OneForTwo.apply(_OneForTwo.apply(h, self.p), self.q)


@odd
class StraightThrough(Net):
    def odd(self, h):
        return h + (torch.round(4 * h) / 4 - h).detach()


@odd
class GumbelWithoutNoise(Net):
    def odd(self, h):
        soft = torch.softmax(h / 0.5, -1)
        hard = F.one_hot(soft.argmax(-1), WIDTH).to(h.dtype)
        return h * (hard - soft.detach() + soft)


@odd
class Checkpointed(Net):
    def more(self):
        self.inner = nn.Linear(WIDTH, WIDTH)

    def odd(self, h):
        return checkpoint(lambda h: torch.tanh(self.inner(h)), h, use_reentrant=False)


@odd(capture="ReentrantCheckpoint|use_reentrant|checkpoint|Checkpoint")
class CheckpointedByReentry(Checkpointed):
    def odd(self, h):
        return checkpoint(lambda h: torch.tanh(self.inner(h)), h, use_reentrant=True)


@odd
class CheckpointedNorm(Net):
    """The norm runs twice; its statistics count once in torch's own way: twice."""

    def more(self):
        self.norm = nn.BatchNorm1d(WIDTH)

    def odd(self, h):
        return checkpoint(self.norm, h, use_reentrant=False)


@odd
class HookOnATensor(Net):
    def odd(self, h):
        h = h * 1
        h.register_hook(lambda gradient: gradient.clamp(-0.01, 0.01) * 2)
        return h


@odd
class HookThatKeeps(Net):
    def more(self):
        self.register_buffer("seen", torch.zeros(WIDTH))

    def odd(self, h):
        h = h * 1
        h.register_hook(self.see)
        return h

    def see(self, gradient):
        self.seen.copy_(gradient.sum(0))


@odd
class HookOfBackward(Net):
    def more(self):
        self.first.register_full_backward_hook(lambda module, gives, takes: (2 * gives[0],))
        self.last.register_full_backward_hook(lambda module, gives, takes: (gives[0] * 2,))


@odd
class HookOfForward(Net):
    def more(self):
        self.first.register_forward_hook(lambda module, args, output: output * 2)
        self.last.register_forward_pre_hook(lambda module, args: (args[0] + 1,))


@odd(capture="^first.weight: it has a hook on its gradient")
class HookOnAParameter(Net):
    def more(self):
        self.first.weight.register_hook(lambda gradient: gradient * 2)


@odd
class WeightNorm(Net):
    def more(self):
        self.first = parametrizations.weight_norm(self.first)


@odd
class OldWeightNorm(Net):
    def more(self):
        self.first = torch.nn.utils.weight_norm(self.first)


@odd
class SpectralNorm(Net):
    def more(self):
        self.first = parametrizations.spectral_norm(self.first)


@odd
class OldSpectralNorm(Net):
    def more(self):
        self.first = torch.nn.utils.spectral_norm(self.first)


@odd
class Orthogonal(Net):
    def more(self):
        self.first = parametrizations.orthogonal(self.first, orthogonal_map="cayley")


class _Symmetric(nn.Module):
    def forward(self, w):
        return w.triu() + w.triu(1).t()


@odd
class Parametrized(Net):
    def more(self):
        parametrize.register_parametrization(self.first, "weight", _Symmetric())

    def odd(self, h):
        with parametrize.cached():
            return h @ self.first.weight + F.linear(h, self.first.weight)


@odd
class Pruned(Net):
    def more(self):
        prune.l1_unstructured(self.first, "weight", amount=0.5)


@odd
class PartWithoutGradient(Net):
    def odd(self, h):
        with torch.no_grad():
            target = torch.softmax(self.last(h), -1)
        with torch.set_grad_enabled(False):
            target = target * 2
        return h * target


@odd
class GradientInside(Net):
    """A penalty of the gradient: backward of backward."""

    def odd(self, h):
        energy = torch.tanh(self.last(h)).sum()
        gradient, = torch.autograd.grad(energy, h, create_graph=True)
        return h - 0.1 * gradient


@odd
class GradientStepInside(Net):
    """MAML: a step on a weight inside of forward."""

    def odd(self, h):
        w = self.last.weight
        gradient, = torch.autograd.grad((h @ w).square().mean(), w, create_graph=True)
        return h @ (w - 0.1 * gradient)


@odd
class FunctionalGradient(Net):
    def odd(self, h):
        return torch.func.grad(lambda h: torch.tanh(h @ self.last.weight).sum())(h)


@odd
class Mapped(Net):
    def odd(self, h):
        return torch.func.vmap(lambda row: torch.outer(row, row) @ row)(h)


@odd
class CalledFunctionally(Net):
    def odd(self, h):
        other = {name: 0.5 * value for name, value in self.last.named_parameters()}
        return torch.func.functional_call(self.last, other, (h,))
