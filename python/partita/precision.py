"""What training in half precision keeps in float32."""

import torch

from .errors import InputError

# the word of parallelize -> the dtype of the module, and what a plan says of it
PRECISIONS = {
    "bf16": (torch.bfloat16, {"grad": "float32", "master": "float32"}),
    "fp16": (torch.float16, {"grad": "float32", "master": "float32", "loss_scale": 65536.0}),
}
# Under a larger one squares of gradients, of which the norm is made, overflow in float64 for hundreds of steps; one that is
# too large for a narrower dtype is halved within a few.
LARGEST_SCALE = 2.0 ** 500


def check_loss_scale(precision: dict):
    """precision: as a plan says it."""
    scale = precision.get("loss_scale", 0)
    if scale > LARGEST_SCALE:
        raise InputError("precision", f"loss_scale is {scale:g}, and squares of gradients times it overflow",
                         f"give one up to {LARGEST_SCALE:g}; 65536 is usual")


def check_precision(name: str | None, module: torch.nn.Module):
    """Raises InputError unless the trainable parameters have the dtype that `name` means."""
    if name is None:
        return
    if name not in PRECISIONS:
        raise InputError("precision", f"{name!r} is not known", f"write one of {', '.join(PRECISIONS)}")
    dtype = PRECISIONS[name][0]
    for parameter, value in module.named_parameters():
        if value.requires_grad and value.dtype != dtype:
            raise InputError("precision", f"{parameter} is {value.dtype}, {name} needs {dtype}",
                             f"call module.to({dtype}) first, or use torch.autocast in its forward")
