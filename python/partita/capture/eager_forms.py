"""Ops that torch traces in another form than it runs them in: here they are traced as they run."""

import torch

aten = torch.ops.aten


def batch_norm(x, weight, bias, mean, var, training, momentum, eps):
    """native_batch_norm's schema hides that it changes its buffers; _legit says so."""
    if mean is None:
        return aten._native_batch_norm_legit.no_stats(x, weight, bias, training, momentum, eps)
    return aten._native_batch_norm_legit.default(x, weight, bias, mean, var, training, momentum, eps)


def cross_entropy_of_logits(x, target, weight=None, pos_weight=None, reduction=1):
    """As ATen/native/Loss.cpp; torch traces it by maxima and exponentials, whose rounding differs."""
    log_sigmoid = aten.log_sigmoid_forward.default(x)[0]
    if pos_weight is not None:
        log_sigmoid = log_sigmoid * ((pos_weight - 1) * target + 1)
    loss = (1 - target) * x - log_sigmoid
    if weight is not None:
        loss = loss * weight
    return {0: lambda: loss, 1: loss.mean, 2: loss.sum}[reduction]()


EAGER_FORMS = {aten.native_batch_norm.default: batch_norm,
               aten.binary_cross_entropy_with_logits.default: cross_entropy_of_logits}
