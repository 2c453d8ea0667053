"""Calls of a Step: one at a time, and outside of inference mode."""

import functools

import torch

from .errors import InputError


def exclusive(method):
    """A second thread gets an error instead of ranks that mix two steps; tensors made inside are ordinary ones."""

    @functools.wraps(method)
    def call(self, *args, **kwargs):
        if not self._lock.acquire(blocking=False):
            raise InputError("Step", "another call of it is running", "call it from one thread, one call after the other")
        try:
            with torch.inference_mode(False):
                return method(self, *args, **kwargs)
        finally:
            self._lock.release()

    return call
