"""The tensors a training step reads."""

import inspect
from collections.abc import Mapping

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from ..errors import InputError
from ..random import STATE


class Inputs:
    """The tensors a step reads, real and fake, in the order of the graph's placeholders."""

    def __init__(self, module, batch, train: bool = True):
        self.train = train
        self.params = dict(module.named_parameters())  # a tied weight comes out once
        self.buffers = dict(module.named_buffers())
        self.batch_form = batch
        self.batch = {name: value for name, value in _named(module, batch).items() if _is_tensor(name, value)}
        if not self.batch:
            raise InputError("batch", "it holds no tensor", "give the module's inputs, such as {'input_ids': ids}")
        self.real = [*self.params.values(), *self.buffers.values(), *self.batch.values()]
        self._check_devices()
        self._check_real()
        modes = (value.fake_mode for value in self.real if isinstance(value, FakeTensor))
        self.mode = next(modes, None) or FakeTensorMode(allow_non_fake_inputs=True)
        state = [*self.params.values(), *self.buffers.values()]
        self.fakes = [v if isinstance(v, FakeTensor) else self.mode.from_tensor(v, static_shapes=True) for v in state]
        with self.mode:
            # New tensors, because a batch may give one tensor twice (labels=ids) and later batches need not.
            self.fakes += [torch.empty_strided(v.shape, v.stride(), dtype=v.dtype) for v in self.batch.values()]

    def _check_devices(self):
        for name, value in zip(self.names(), self.real):
            if value.device.type != "cpu":
                raise InputError(name, f"it is on device {value.device}",
                                 "capture on the cpu, or build module and batch under FakeTensorMode")

    def _check_real(self):
        for name, value in {**self.params, **self.batch}.items():
            if value.is_complex():
                raise InputError(name, "it is complex; parameters and batch inputs are real",
                                 "keep its real and imaginary parts in a last dimension of 2, and use torch.view_as_complex")

    def check_values(self):
        for name, value in zip(self.names(), self.real):
            if isinstance(value, FakeTensor):
                raise InputError(name, "it is fake and has no values to bake in", "build module and batch on the cpu")

    def add_random_state(self):
        """One more buffer, the last one: what the step's random numbers are drawn from."""
        at = len(self.params) + len(self.buffers)
        self.buffers[STATE] = torch.zeros((), dtype=torch.int64)
        self.real.insert(at, self.buffers[STATE])
        self.fakes.insert(at, self.mode.from_tensor(self.buffers[STATE]))

    def position(self, name):
        return self.names().index(name)

    def names(self):
        return [*self.params, *self.buffers, *self.batch]

    def split(self, values):
        """Flat values -> (parameters, buffers, batch in the form the user gave it)."""
        values = list(values)
        params = dict(zip(self.params, values))
        buffers = dict(zip(self.buffers, values[len(params):]))
        rest = iter(values[len(params) + len(buffers):])
        if isinstance(self.batch_form, Mapping):
            return params, buffers, {name: next(rest) if isinstance(value, torch.Tensor) else value
                                     for name, value in self.batch_form.items()}
        return params, buffers, tuple(next(rest) if isinstance(value, torch.Tensor) else value
                                      for value in self.batch_form)


def check_module(module):
    if not isinstance(module, torch.nn.Module):
        raise InputError("capture", f"module is a {type(module).__name__}", "give a torch.nn.Module")
    if hasattr(module, "_orig_mod"):
        raise InputError(type(module).__name__, "it is what torch.compile made of a module",
                         "give the module itself, before torch.compile")
    if type(module).__name__ in WRAPPERS:
        raise InputError(type(module).__name__, "it distributes a module already", "give the module inside, .module")


WRAPPERS = ("DistributedDataParallel", "DataParallel", "FullyShardedDataParallel", "DeepSpeedEngine")


def arguments_of(module, batch, loss) -> tuple:
    """(positional arguments, keywords, what is left for the loss) of one call of the module."""
    parameters = inspect.signature(module.forward).parameters
    if isinstance(batch, Mapping):
        if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            return (), dict(batch), []
        rest = [name for name in batch if name not in parameters]
        taken = {name: value for name, value in batch.items() if name in parameters}
        args, left = (), [batch[name] for name in rest]
    else:
        taken, many = {}, any(p.kind is p.VAR_POSITIONAL for p in parameters.values())
        count = len(batch) if many else len(_positional(module))
        args, left = tuple(batch[:count]), list(batch[count:])
        rest = [f"input.{i}" for i in range(count, len(batch))]
    if rest and loss is None:
        raise InputError(f"forward of {type(module).__name__}", f"it does not take {', '.join(rest)} of the batch",
                         f"it takes {', '.join(parameters) or 'nothing'}; what only the loss reads needs loss=")
    return args, taken, left


def _positional(module) -> list:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [name for name, p in inspect.signature(module.forward).parameters.items() if p.kind in kinds]


def _named(module, batch) -> dict:
    if isinstance(batch, Mapping):
        return dict(batch)
    if not isinstance(batch, tuple):
        raise InputError("batch", f"it is a {type(batch).__name__}",
                         "give a dict of keyword arguments or a tuple of positional arguments")
    known = _positional(module)
    return {known[i] if i < len(known) else f"input.{i}": value for i, value in enumerate(batch)}


def _is_tensor(name, value) -> bool:
    if not isinstance(value, (torch.Tensor, bool, int, float, str, type(None))):
        raise InputError(f"batch {name}", f"it is a {type(value).__name__}", "give a tensor, or a plain value to bake in")
    return isinstance(value, torch.Tensor)
