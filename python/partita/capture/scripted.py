"""Functions compiled by torch.jit.script, run as they were written."""

import contextlib

import torch


@contextlib.contextmanager
def scripted_as_written():
    """TorchScript reorders the ops of a function after its first calls, so that a trace would depend on how often it was
    called before; torch.compile traces the Python of it for the same reason."""
    compiled = torch.jit.ScriptFunction.__call__

    def call(function, *args, **kwargs):
        return getattr(function, "_torchdynamo_inline", lambda *a, **k: compiled(function, *a, **k))(*args, **kwargs)

    torch.jit.ScriptFunction.__call__ = call
    try:
        yield
    finally:
        torch.jit.ScriptFunction.__call__ = compiled
