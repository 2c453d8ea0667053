"""FILE.py:FUNCTION -> the module, batch and loss that a user's function returns, built without weights."""

import contextlib
import importlib.util
import inspect
import sys
from pathlib import Path

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from .errors import InputError

RETURNS = "return (module, batch) or (module, batch, loss)"


def is_function(source: str) -> bool:
    """Is it FILE.py:FUNCTION?"""
    file, colon, _ = source.rpartition(":")
    return bool(colon) and file.endswith(".py")


def call_function(source: str, given: dict, real: bool) -> tuple:
    """(module, batch, loss). `given`: batch, seq and dtype of the command line, for those that the function takes.

    Tensors are fake while it runs, so a module of any size can be built; `real` lets them have values.
    """
    function = _find(source)
    options = _accepted(source, function, given)
    with contextlib.nullcontext() if real else FakeTensorMode(allow_non_fake_inputs=True):
        try:
            answer = function(**options)
        except Exception as error:
            what = (str(error).strip().splitlines() or [""])[0]
            hint = "see that it runs by itself" + ("" if real else "; --real lets its tensors have values")
            raise InputError(source, f"it raised {type(error).__name__}: {what}", hint) from error
    if not isinstance(answer, tuple) or len(answer) not in (2, 3) or not isinstance(answer[0], torch.nn.Module):
        raise InputError(source, f"it returned a {type(answer).__name__}", RETURNS)
    return (*answer, None)[:3]


def _find(source):
    file, _, name = source.rpartition(":")
    path = Path(file)
    if not path.is_file():
        raise InputError(file, "there is no such file", "give FILE.py:FUNCTION")
    sys.path.insert(0, str(path.resolve().parent))  # for what it imports from beside it
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InputError(file, f"it cannot be imported: {type(error).__name__}: {error}", "see that python runs it") from error
    function = getattr(module, name, None)
    if not callable(function):
        functions = [n for n, f in vars(module).items() if inspect.isfunction(f) and f.__module__ == path.stem]
        raise InputError(source, f"{file} has no function {name}", f"it has {', '.join(functions) or 'none'}")
    return function


def _accepted(source, function, given):
    takes = inspect.signature(function).parameters
    several = any(p.kind == inspect.Parameter.VAR_KEYWORD for p in takes.values())
    options = {key: value for key, value in given.items() if value is not None}
    for key in options:
        if key not in takes and not several:
            raise InputError(f"--{key}", f"{source} does not take {key}", f"add {key} to its parameters, or leave --{key} out")
    return options
