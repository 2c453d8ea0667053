"""Calls of ops that have rows, each with a batch: what bench/inferred_rows.py hides and looks for.

Arguments do not depend on sizes, as letters cannot say how those change. A call is (op, arguments); `made` draws its tensors.
"""

import torch

aten = torch.ops.aten
B, S, H, C = 4, 3, 8, 6  # batch, tokens, hidden, classes


def real(*shape, dtype=torch.float32):
    return lambda g: torch.randn(shape, generator=g).to(dtype)


def positive(*shape):
    return lambda g: torch.rand(shape, generator=g) + 0.1


def whole(high, *shape):
    return lambda g: torch.randint(0, high, shape, generator=g)


def truth(*shape):
    return lambda g: torch.rand(shape, generator=g) < 0.5


X, Y = real(B, S, H), real(B, S, H)
IMAGE, SMALLER = real(B, C, 8, 8), real(B, C, 4, 4)

ONE = [aten.neg.default, aten.relu.default, aten.gelu.default, aten.silu.default, aten.tanh.default, aten.sigmoid.default,
       aten.softplus.default, aten.hardtanh.default, aten.leaky_relu.default, aten.abs.default, aten.sign.default,
       aten.sgn.default, aten.ceil.default, aten.cos.default, aten.sin.default, aten.erf.default, aten.exp.default,
       aten.reciprocal.default, aten.clone.default, aten.log_sigmoid_forward.default]
TWO = [aten.add.Tensor, aten.sub.Tensor, aten.mul.Tensor, aten.div.Tensor, aten.maximum.default, aten.minimum.default,
       aten.eq.Tensor, aten.ne.Tensor, aten.lt.Tensor, aten.le.Tensor, aten.gt.Tensor, aten.ge.Tensor,
       aten.gelu_backward.default, aten.silu_backward.default, aten.tanh_backward.default, aten.sigmoid_backward.default]
NUMBER = [aten.mul.Scalar, aten.div.Scalar, aten.add.Scalar, aten.sub.Scalar, aten.rsub.Scalar, aten.eq.Scalar,
          aten.ne.Scalar, aten.lt.Scalar, aten.gt.Scalar, aten.ge.Scalar, aten.le.Scalar, aten.pow.Tensor_Scalar]

CALLS = [
    *((op, (X,)) for op in ONE),
    *((op, (positive(B, S, H),)) for op in (aten.log.default, aten.sqrt.default, aten.rsqrt.default)),
    *((op, (X, Y)) for op in TWO),
    *((op, (X, 2.0)) for op in NUMBER),
    (aten.clamp.default, (X, -0.5, 0.5)),
    (aten.pow.Tensor_Tensor, (positive(B, S, H), Y)),
    (aten.threshold_backward.default, (X, Y, 0.0)),
    (aten.softplus_backward.default, (X, Y, 1.0, 20.0)),
    (aten.hardtanh_backward.default, (X, Y, -1.0, 1.0)),
    (aten.leaky_relu_backward.default, (X, Y, 0.01, False)),
    (aten.add.Tensor, (X, real(H))),
    (aten.mul.Tensor, (X, real(B, S, 1))),
    (aten.where.self, (truth(B, S, H), X, Y)),
    (aten.masked_fill.Scalar, (X, truth(B, S, H), -1.0)),
    (aten.bitwise_and.Tensor, (truth(B, S), truth(B, S))),
    (aten.bitwise_or.Tensor, (truth(B, S), truth(B, S))),
    (aten.bitwise_not.default, (truth(B, S),)),
    (aten.logical_and.default, (truth(B, S), truth(B, S))),
    (aten.logical_not.default, (truth(B, S),)),
    (aten.mm.default, (real(B, H), real(H, C))),
    (aten.mm.default, (real(B, H, dtype=torch.bfloat16), real(H, C, dtype=torch.bfloat16))),
    (aten.bmm.default, (real(B, S, H), real(B, H, C))),
    (aten.addmm.default, (real(C), real(B, H), real(H, C))),
    (aten.baddbmm.default, (real(B, S, C), real(B, S, H), real(B, H, C))),
    (aten._softmax.default, (X, -1, False)),
    (aten._log_softmax.default, (X, -1, False)),
    (aten._safe_softmax.default, (X, -1)),
    (aten._softmax_backward_data.default, (X, Y, -1, torch.float32)),
    (aten._log_softmax_backward_data.default, (X, Y, -1, torch.float32)),
    (aten.native_layer_norm.default, (X, [H], real(H), real(H), 1e-5)),
    (aten.native_layer_norm_backward.default,
     (X, Y, [H], real(B, S, 1), positive(B, S, 1), real(H), real(H), [True, False, False])),
    (aten.sum.dim_IntList, (X, [-1])),
    (aten.sum.dim_IntList, (X, [1], True)),
    (aten.mean.dim, (X, [-1], True)),
    (aten.amax.default, (X, [-1])),
    (aten.argmax.default, (X, -1)),
    (aten.max.dim, (X, -1)),
    (aten.topk.default, (X, 2)),
    (aten.cumsum.default, (X, 1)),
    (aten.flip.default, (X, [1])),
    (aten.roll.default, (X, [1], [1])),
    (aten.tril.default, (X,)),
    (aten.triu.default, (X,)),
    (aten.linalg_vector_norm.default, (X, 2, [-1])),
    (aten.gather.default, (X, 2, whole(H, B, S, 2))),
    (aten.scatter.value, (X, 2, whole(H, B, S, 2), 1.0)),
    (aten.scatter.src, (X, 2, whole(H, B, S, 2), real(B, S, 2))),
    (aten.scatter_add.default, (X, 2, whole(H, B, S, 2), real(B, S, 2))),
    (aten.constant_pad_nd.default, (X, [1, 2], 0.5)),
    (aten.cat.default, ([X, Y], 2)),
    (aten.stack.default, ([X, Y], 2)),
    (aten.convolution.default, (IMAGE, real(5, C, 3, 3), real(5), [1, 1], [1, 1], [1, 1], False, [0, 0], 1)),
    (aten.convolution.default, (real(B, C, 16), real(5, C, 3), None, [2], [1], [1], False, [0], 1)),
    (aten.max_pool2d_with_indices.default, (IMAGE, [2, 2], [2, 2])),
    (aten.avg_pool2d.default, (IMAGE, [2, 2], [2, 2])),
    (aten.avg_pool2d_backward.default, (SMALLER, IMAGE, [2, 2], [2, 2], [0, 0], False, True, None)),
    (aten._scaled_dot_product_flash_attention_for_cpu.default,
     (real(B, 2, 5, H), real(B, 2, 5, H), real(B, 2, 5, H), 0.0, True)),
    (aten.mse_loss.default, (X, Y, 0)),
    (aten.mse_loss_backward.default, (X, Y, X, 0)),
    (aten.embedding.default, (real(50, H), whole(50, B, S))),
]


def made(arguments, generator):
    """Arguments with their tensors drawn."""
    if isinstance(arguments, (list, tuple)):
        return type(arguments)(made(value, generator) for value in arguments)
    return arguments(generator) if callable(arguments) and not isinstance(arguments, torch.dtype) else arguments
