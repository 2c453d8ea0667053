"""Odd modules beside plain PyTorch: what users write that no model in a paper has."""

from . import aliases, attributes, buffers, calls, functions, gradients, losses, sharing, views  # noqa: F401: each fills the list
from .net import ODD

__all__ = ["ODD"]
