"""Partita: the fastest way to run a PyTorch training step on a cluster that fits in memory."""

from .capture import capture
from .errors import InputError
from .model import Model

__all__ = ["InputError", "Model", "capture"]
