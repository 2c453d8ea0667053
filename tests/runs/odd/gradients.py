"""What forward does to gradients of parameters itself."""

import torch

from .net import WIDTH, Net, odd, weight

LEAVES = "forward leaves a gradient in it.*torch.autograd.grad"
HOOKS = "^last.weight: forward registers a hook on its gradient.*register it on what forward computes"


@odd(capture=f"^first.weight: {LEAVES}")
class AuxiliaryBackward(Net):
    def odd(self, h):
        (h ** 2).mean().backward(retain_graph=True)
        return h


@odd(capture=f"^first.weight: {LEAVES}")
class AuxiliaryBackwardOfAWeight(Net):
    def odd(self, h):
        torch.autograd.backward([(self.first.weight ** 2).sum()])
        return h


@odd(capture=f"^last.weight: {LEAVES}")
class SetsAGradient(Net):
    def odd(self, h):
        self.last.weight.grad = torch.ones_like(self.last.weight)
        return h


@odd(capture=f"^own: {LEAVES}")
class OptimizerInside(Net):
    """Its step changes the parameter in eager PyTorch."""

    def more(self):
        self.own = weight(WIDTH)
        self.inner = [torch.optim.SGD([self.own], 0.1)]

    def odd(self, h):
        self.inner[0].zero_grad()
        (self.own ** 2).sum().backward()
        self.inner[0].step()
        return h * self.own.detach()


@odd(capture=f"^last.weight: {LEAVES}")
class SetsAGradientInBackward(Net):
    def odd(self, h):
        h = h * 1
        h.register_hook(self.keep)
        return h

    def keep(self, gradient):
        self.last.weight.grad = torch.ones_like(self.last.weight)


@odd
class ClearsGradients(Net):
    def odd(self, h):
        self.zero_grad()
        return h


def _triple(parameter):
    parameter.grad.mul_(3)


@odd(capture=HOOKS)
class HookAfterAccumulation(Net):
    def odd(self, h):
        if not self.last.weight._post_accumulate_grad_hooks:
            self.last.weight.register_post_accumulate_grad_hook(_triple)
        return h


@odd(capture=HOOKS)
class OneMoreHookInEveryForward(Net):
    def odd(self, h):
        self.last.weight.register_hook(lambda gradient: gradient * 3)
        return h


@odd
class HookOnACopyOfAParameter(Net):
    def odd(self, h):
        copy = self.last.weight * 1
        copy.register_hook(lambda gradient: gradient * 3)
        return h @ copy


@odd(capture="^last.weight: forward sets its requires_grad to False.*detach")
class FreezesInForward(Net):
    def odd(self, h):
        self.last.weight.requires_grad_(False)
        return h
