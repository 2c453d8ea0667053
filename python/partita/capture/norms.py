"""Norms that divide by how many batches they have seen."""

import torch

from ..errors import InputError


def check_norms(module: torch.nn.Module):
    """Raises InputError where a norm reads a number from its buffers, which another step would read otherwise."""
    for path, part in module.named_modules():
        if isinstance(part, torch.nn.modules.batchnorm._BatchNorm) and part.training and part.track_running_stats \
                and part.momentum is None:
            raise InputError(path or type(part).__name__, "it has momentum=None, and its average depends on the number of batches "
                             "so far, which a graph of one step does not have",
                             "give momentum a number, such as 0.1, or put it into eval mode")
