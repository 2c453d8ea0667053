"""Results of an op that are one tensor, such as the two bias gradients of an LSTM, kept apart."""

import contextlib

from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode


@contextlib.contextmanager
def results_apart(mode: FakeTensorMode):
    """No op under `mode` gives one tensor twice while the block runs.

    A tracer takes one tensor for the result it saw last. Whether a fake op gives one or two depends on what torch has
    cached before, so that the same module would be traced in two ways.
    """
    dispatch = mode.dispatch

    def apart(func, types, args=(), kwargs=None):
        results = dispatch(func, types, args, kwargs)
        return _apart(results) if isinstance(results, tuple) else results

    mode.dispatch = apart
    try:
        yield
    finally:
        del mode.dispatch


def _apart(results):
    made, seen = [], set()
    for result in results:
        again = isinstance(result, FakeTensor) and id(result) in seen
        seen.add(id(result))
        made.append(_like(result) if again else result)
    return tuple(made)


def _like(value):
    return value.new_empty_strided(value.shape, value.stride())
