"""What went wrong while a step was traced: the module, the line of the user's code, the op, something to try."""

import contextlib
import linecache
import logging
import os
import sys
import traceback

import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException

from ..errors import InputError

OURS = (os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep, os.path.dirname(torch.__file__) + os.sep)
REMEDY = ("compute it outside the module, write it with torch.where and fixed shapes, or give bake=True to keep what "
          "this batch does")


@contextlib.contextmanager
def explained(recorder):
    """Turns what tracing raises into an InputError with the module it happened in."""
    log = logging.getLogger("torch._subclasses.fake_tensor")
    level = log.level
    log.setLevel(logging.CRITICAL)  # what it logs comes as an exception too
    try:
        yield
    except InputError:
        raise
    except DataDependentOutputException as error:
        raise InputError(recorder.path, f"{error.func} reads a value of a tensor{_at(error)}, so the graph would depend "
                         "on data", REMEDY) from error
    except DynamicOutputShapeException as error:
        raise InputError(recorder.path, f"the shape of the result of {error.func} depends on data{_at(error)}",
                         REMEDY) from error
    except Exception as error:
        # The first line says what; the rest is the tracer's own story, kept in the cause.
        found = str(error).strip().split("\n")[0]
        raise InputError(recorder.path, f"{type(error).__name__}{_at(error)}{_during(recorder)}: {found}",
                         "see that the module runs on this batch without capture; if it does, write the line with "
                         "plain tensor operations") from error
    finally:
        log.setLevel(level)


def _at(error) -> str:
    frame = user_frame(traceback.extract_tb(error.__traceback__))
    return f" at {frame}" if frame else ""


def _during(recorder) -> str:
    return f" (last op {recorder.last})" if recorder.last else ""


def user_frame(stack) -> str:
    """`net.py:12 (if x.sum() > 0:)`, the innermost line that is neither PyTorch's nor ours; empty when there is none."""
    for frame in reversed(stack):
        if not frame.filename.startswith(OURS) and not frame.filename.startswith("<"):
            line = linecache.getline(frame.filename, frame.lineno).strip()
            return f"{os.path.basename(frame.filename)}:{frame.lineno} ({line})"
    return ""


def current_line() -> str:
    """The line of the user's code that is running."""
    return user_frame(traceback.extract_stack(sys._getframe(1)))
