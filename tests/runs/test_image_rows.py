"""Ops on images, along dimensions and by index: captured without an opaque op, run as eager, hidden bytes as their rows say."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import partita
from partita.native import library

LINE, IMAGE, VOLUME = (2, 4, 6), (2, 4, 6, 8), (2, 4, 4, 6, 8)
INDEX = torch.tensor([0, 2, 1])
PLACES = torch.tensor([[[0], [3], [1]], [[2], [2], [0]]]).expand(2, 3, 6)


def target(x):
    return torch.linspace(0.1, 0.9, x.numel(), dtype=x.dtype).view(x.shape)


def like(x, *shape):
    return torch.zeros(shape, dtype=x.dtype)


RESIZED = {f"{mode}, {rank - 2} dimensions, {how}":
           (shape, lambda x, mode=mode, given=given: F.interpolate(x, mode=mode, **given(x)))
           for mode, shape in [("nearest", LINE), ("nearest", IMAGE), ("nearest", VOLUME), ("nearest-exact", LINE),
                               ("nearest-exact", IMAGE), ("nearest-exact", VOLUME), ("linear", LINE), ("bilinear", IMAGE),
                               ("bicubic", IMAGE), ("trilinear", VOLUME), ("area", IMAGE)]
           for rank in [len(shape)]
           for how, given in [("twice", lambda x: {"scale_factor": 2}), ("to a size", lambda x: {"size": [7] * (x.dim() - 2)})]}
PADDED = {f"{mode} pad, {len(shape) - 2} dimensions": (shape, lambda x, mode=mode: F.pad(x, [1] * (2 * x.dim() - 4), mode=mode))
          for mode in ("reflect", "replicate") for shape in (LINE, IMAGE, VOLUME)}
LOSSES = {f"{name}, {reduction}": (LINE, lambda x, name=name, how=reduction: getattr(F, name)(x, target(x), reduction=how))
          for name in ("smooth_l1_loss", "huber_loss", "soft_margin_loss", "binary_cross_entropy")
          for reduction in ("mean", "sum", "none")}
CASES = {
    **RESIZED, **PADDED, **LOSSES,
    "large bilinear": ((2, 3, 40, 40), lambda x: F.interpolate(x, scale_factor=2, mode="bilinear")),
    "large nearest": ((2, 3, 40, 40), lambda x: F.interpolate(x, scale_factor=2)),
    "one channel": ((2, 1, 6, 8), lambda x: F.interpolate(x, scale_factor=2, mode="bilinear")),
    "one place": ((2, 4, 1, 1), lambda x: F.interpolate(x, scale_factor=2, mode="bilinear")),
    "smooth bilinear": (IMAGE, lambda x: F.interpolate(x, size=[3, 5], mode="bilinear", antialias=True)),
    "smooth bicubic, larger": (IMAGE, lambda x: F.interpolate(x, size=[9, 20], mode="bicubic", antialias=True)),
    "smooth, one direction": (IMAGE, lambda x: F.interpolate(x, size=[x.shape[2], 5], mode="bilinear", antialias=True)),
    "smooth, high": ((2, 1, 40, 3), lambda x: F.interpolate(x, size=[30, 2], mode="bicubic", antialias=True)),
    "adaptive mean": (IMAGE, lambda x: F.adaptive_avg_pool2d(x, (3, 4))),
    "adaptive mean, volume": (VOLUME, lambda x: F.adaptive_avg_pool3d(x, 2)),
    "adaptive max": (IMAGE, lambda x: F.adaptive_max_pool2d(x, 3)),
    "adaptive max, volume": (VOLUME, lambda x: F.adaptive_max_pool3d(x, 2)),
    "max pool": (IMAGE, lambda x: F.max_pool2d(x, 2)),
    "mean pool": (IMAGE, lambda x: F.avg_pool2d(x, 2)),
    "max pool, volume": (VOLUME, lambda x: F.max_pool3d(x, 2)),
    "mean pool, volume": (VOLUME, lambda x: F.avg_pool3d(x, 2)),
    "pixel shuffle": (IMAGE, lambda x: F.pixel_shuffle(x, 2)),
    "pixel unshuffle": (IMAGE, lambda x: F.pixel_unshuffle(x, 2)),
    "channel shuffle": (IMAGE, lambda x: F.channel_shuffle(x, 2)),
    "columns": (IMAGE, lambda x: F.unfold(x, 3)),
    "columns added up": ((2, 12, 12), lambda x: F.fold(x[..., :12, :12].reshape(2, 12, 12), (4, 5), (2, 2))),
    "windows": ((2, 4, 9), lambda x: x.unfold(1, 3, 1)),
    "windows side by side": ((2, 4, 6), lambda x: x.unfold(1, 2, 2)),
    "grid": (IMAGE, lambda x: F.grid_sample(x, F.affine_grid(x[:, 0, :2, :3], (2, 4, 3, 5), align_corners=False),
                                            align_corners=False)),
    "index_select": (LINE, lambda x: x.index_select(1, INDEX)),
    "index_add": (LINE, lambda x: like(x, 2, 8, x.shape[2]).index_add(1, INDEX, x[:, :3])),
    "index_copy": (LINE, lambda x: x.index_copy(1, INDEX, x[:, :3] * 2)),
    "take": (LINE, lambda x: torch.take(x, PLACES)),
    "scatter, mean": (LINE, lambda x: like(x, 2, 4, 6).scatter_reduce(1, PLACES[..., :4], x[:, :3, :4], "mean")),
    "scatter, largest": (LINE, lambda x: like(x, 2, 4, 6).scatter_reduce(1, PLACES[..., :4], x[:, :3, :4], "amax")),
    "cumprod": (LINE, lambda x: x.cumprod(1)),
    "cummax": (LINE, lambda x: x.cummax(1)[0]),
    "logcumsumexp": (LINE, lambda x: x.logcumsumexp(1)),
    "sort": (LINE, lambda x: x.sort(1)[0]),
    "kthvalue": (LINE, lambda x: x.kthvalue(2, 1)[0]),
    "median": (LINE, lambda x: x.median(1)[0]),
    "median of rows": (LINE, lambda x: x.median(2)[0]),
    "smooth bicubic": (IMAGE, lambda x: F.interpolate(x, size=[3, 5], mode="bicubic", antialias=True)),
    "largest of all": (LINE, lambda x: x.max()),
    "logsumexp": (LINE, lambda x: x.logsumexp(1)),
    "diagonal": (LINE, lambda x: x.diagonal(0, 1, 2)),
    "isinf": (LINE, lambda x: x * x.isinf()),
    "degrees": (LINE, torch.deg2rad),
    "hardswish": (LINE, F.hardswish),
    "glu": (LINE, lambda x: F.glu(x, 1)),
    "elu": (LINE, F.elu),
}
LIE = {"dense": lambda x: x, "turned": lambda x: x.transpose(-1, -2),
       "by place": lambda x: x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)}
# Their functions take shapes as they are; of a median that is not dense a bound is known.
ONLY_DENSE = {"grid", "index_add", "one place", "median", "median of rows"}


class Step(nn.Module):
    def __init__(self, function, shape, squares, dtype):
        super().__init__()
        self.function, self.squares = function, squares
        self.weight = nn.Parameter(torch.linspace(0.1, 0.9, torch.Size(shape).numel(), dtype=dtype).view(shape).sin().abs())

    def forward(self, x):
        y = self.function(self.weight * x)
        return (y * y).sum() if self.squares else y.sum()


def measured(module, x):
    """(op, hidden bytes counted, hidden bytes of its row) of the captured step, after a run equal to eager."""
    model = partita.capture(module, {"x": x})
    assert not model.opaque_ops
    module(x).backward()
    out = model.run(module, {"x": x})
    assert torch.equal(out.grads["weight"], module.weight.grad)
    values = {"weight": module.weight, **model.constants}
    targets = {op["name"]: op["target"] for op in model.ops}
    return [(targets[name], found, said) for name, _, found, said, *_ in library().workspace(model.to_json(), values, {"x": x})]


@pytest.mark.parametrize("lie", LIE)
@pytest.mark.parametrize("name", CASES)
def test_hidden_bytes_are_those_of_the_rows(name, lie):
    shape, function = CASES[name]
    if lie != "dense" and (name in ONLY_DENSE or (lie == "by place" and len(shape) != 4)):
        pytest.skip("lies one way only")
    # A gradient of its own, or one number expanded.
    for squares, dtype in ((True, torch.float32), (False, torch.float64))[lie == "turned":]:
        step = Step(lambda x: function(LIE[lie](x)), shape, squares, dtype)
        for op, found, said in measured(step, torch.ones(shape, dtype=dtype)):
            assert found == said, (op, dtype, squares)


class UNet(nn.Module):
    """Down, up with skip connections, and a head: every way of resizing that segmentation and super-resolution use."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 8, 3, padding=1, padding_mode="reflect"), nn.Conv2d(8, 16, 3, padding=1)
        self.narrow, self.merge = nn.Conv2d(16, 8, 1), nn.Conv2d(16, 8, 3, padding=1)
        self.gate, self.out = nn.Linear(8 * 4, 8), nn.Conv2d(8, 4, 3, padding=1)

    def forward(self, image, label):
        high = F.hardswish(self.first(image))
        low = F.elu(self.second(F.max_pool2d(high, 2)))
        up = F.interpolate(self.narrow(low), scale_factor=2, mode="bilinear", align_corners=False)
        up = F.hardswish(self.merge(torch.cat([up, F.interpolate(high, size=up.shape[2:], mode="nearest")], 1)))
        gate = self.gate(F.adaptive_avg_pool2d(up, 2).flatten(1)).sigmoid()[:, :, None, None]
        image = F.pixel_shuffle(self.out(up * gate), 2)
        return F.smooth_l1_loss(F.interpolate(image, size=label.shape[2:], mode="bicubic"), label)


def unet():
    torch.manual_seed(0)
    return UNet(), {"image": torch.rand(4, 3, 12, 12), "label": torch.rand(4, 1, 20, 20)}


def test_no_op_of_a_unet_is_opaque():
    module, batch = unet()
    model = partita.capture(module, batch)
    assert not model.opaque_ops
    loss = module(**batch)
    loss.backward()
    out = model.run(module, batch)
    assert out.loss == loss.item()
    for name, parameter in module.named_parameters():
        assert torch.equal(out.grads[name], parameter.grad), name
