"""A PyTorch module and a batch -> one training step as a functional ATen graph. `partita.capture` is its function."""

from .trace import capture, capture_evaluation

__all__ = ["capture", "capture_evaluation"]
