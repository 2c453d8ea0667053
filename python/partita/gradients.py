"""Gradients that forward leaves beside those of the loss, and hooks on gradients: a step has neither."""

import torch

from .errors import InputError


def check_hooks(named: dict):
    """Raises InputError where a parameter has a hook: ranks compute gradients without calling it."""
    for name, parameter in named.items():
        if _hooked(parameter):
            raise InputError(name, "it has a hook on its gradient, which ranks do not call",
                             "remove the hook; clip= of parallelize clips gradients")


def check_inputs(batch: dict):
    """batch: tensors by name. Eager PyTorch would leave gradients in them, or train what made them."""
    for name, value in batch.items():
        if value.requires_grad:
            raise InputError(f"batch {name}", "it requires a gradient, which a step does not compute",
                             "give it with .detach(); gradients that forward itself reads start at .requires_grad_() in "
                             "forward")


def check_dense(gradients: dict):
    """gradients: by parameter; None where it has none."""
    for name, gradient in gradients.items():
        if gradient is not None and gradient.layout is not torch.strided:
            raise InputError(name, f"its gradient is a sparse tensor ({gradient.layout}), which ranks do not add",
                             "make the embedding with sparse=False")


class Gradients:
    """What `.grad` and `.requires_grad` of the tensors of a step are when forward begins."""

    def __init__(self, *groups: dict):
        """groups: tensors by name; those of the trace, and those that stand for them in the module."""
        self.before = [(name, value, value.grad, value.requires_grad) for its in groups for name, value in its.items()]

    def check(self):
        """Raises InputError where forward left a gradient or a hook: eager PyTorch adds the one to that of the loss, and
        calls the other in every later step."""
        left = [name for name, value, grad, _ in self.before if value.grad is not grad]
        for _, value, grad, _ in self.before:
            value.grad = grad
        if left:
            raise InputError(left[0], "forward leaves a gradient in it (by backward() or .grad), which a step does not add to "
                             "that of the loss", "add what backward() is called on to the loss, or use torch.autograd.grad")
        for name, value, _, asks in self.before:
            if _hooked(value):
                raise InputError(name, "forward registers a hook on its gradient, which eager PyTorch calls in later steps too",
                                 "register it on what forward computes, such as parameter * 1")
            if value.requires_grad != asks:
                raise InputError(name, f"forward sets its requires_grad to {value.requires_grad}", "set it before the step is "
                                 "captured, or use .detach() in forward")


def _hooked(tensor):
    return tensor._backward_hooks or getattr(tensor, "_post_accumulate_grad_hooks", None)
