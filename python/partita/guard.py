"""The tensors of a module while ranks have them.

A stand-in keeps shape and dtype and costs one element: its sizes can be read, writing to it raises, and computing with
it gives NaN. A module whose weights silently stay old would be worse than one that cannot be used.
"""

import contextlib

import torch

from .elsewhere import held_elsewhere
from .errors import InputError


class Guard:
    """Stands in the hooks of a module whose tensors a Step has; every use of the module ends in one sentence."""

    def __init__(self, owner):
        self.owner = owner

    def __call__(self, module, *_):
        raise _taken(type(module).__name__)

    def __deepcopy__(self, _memo):
        raise _taken("copy of a module")

    def __reduce__(self):
        raise _taken("pickle of a module")


def _taken(where):
    return InputError(where, "its parameters are with the ranks of a step", "call step.module(), which gives them back")


OWNER = "_partita_owner"  # of a parameter or buffer whose values a Step has


def owner_of(module: torch.nn.Module):
    """The Step that has any tensor of `module`; None where the module has all of them itself."""
    tensors = [*module.parameters(), *module.buffers()]
    return next((getattr(tensor, OWNER) for tensor in tensors if hasattr(tensor, OWNER)), None)


class Taken:
    """Named tensors of one module: in it (`given`), or with the ranks and stand-ins in their place."""

    def __init__(self, module: torch.nn.Module, parameters, buffers, owner):
        self.module, self.owner, self.buffers = module, owner, list(buffers)
        self.parameters = {name: module.get_parameter(name) for name in parameters}
        self.kinds = {name: (tensor.shape, tensor.dtype) for name, tensor in self.tensors.items()}
        self.trains = {name: p.requires_grad for name, p in module.named_parameters()}
        self.stand_ins, self.handles = {}, []
        self.held, self.versions = {}, {}  # memory in which others lie; counts of what was written, also through views

    @property
    def tensors(self) -> dict:
        """Buffers may be other objects than before: a module can put a new tensor in their place."""
        return {**self.parameters, **{name: self.module.get_buffer(name) for name in self.buffers}}

    @property
    def given(self) -> bool:
        return not self.stand_ins

    def values(self) -> dict:
        """What the module holds now. Raises InputError where it is not what was captured. REQUIRES: given."""
        self.check_kinds()
        return {name: tensor.detach() for name, tensor in self.tensors.items()}

    def check_kinds(self):
        where = type(self.module).__name__
        now = dict(self.module.named_parameters())
        for name, trains in self.trains.items():
            if name not in now or (name in self.parameters and now[name] is not self.parameters[name]):
                raise InputError(where, f"another parameter is in the place of {name}",
                                 "make a new optimizer, and a new step with parallelize")
            if getattr(now[name], OWNER, self.owner) is not self.owner:
                raise InputError(where, f"{name} is with the ranks of another step", "call module() of that step first")
            if now[name].requires_grad != trains:
                raise InputError(where, f"requires_grad of {name} was changed", "make a new step with parallelize")
        for name, tensor in self.tensors.items():
            if (tensor.shape, tensor.dtype) != self.kinds[name]:
                shape, dtype = self.kinds[name]
                raise InputError(where, f"{name} is {tensor.dtype}{list(tensor.shape)} now and was {dtype}{list(shape)}",
                                 "make a new step with parallelize")

    def take(self):
        """Puts stand-ins into the module; nobody but the caller has the values then."""
        self.held = held_elsewhere(self.tensors)
        self._stand_in()

    @contextlib.contextmanager
    def lent(self, values: dict):
        """The module holds `values` for a moment. Memory in which others lie is left alone; what is done to them is lost
        unless it is read inside."""
        held, self.held = self.held, {}
        self.give(values)
        try:
            yield
        finally:
            self._stand_in()
            self.held = held

    def _stand_in(self):
        guard = Guard(self.owner)
        for name, tensor in self.tensors.items():
            tensor.grad = None
            self.stand_ins[name] = tensor.data = _stand_in(tensor)
            self.versions[name] = tensor._version
            setattr(tensor, OWNER, self.owner)
        for part in self._parts():
            self.handles += [part.register_forward_pre_hook(guard), part.register_state_dict_pre_hook(guard),
                             part.register_load_state_dict_pre_hook(guard)]

    def _parts(self):
        """The module, and every part of it that holds one of the tensors."""
        names = {"", *(name.rpartition(".")[0] for name in self.tensors)}
        return [self.module.get_submodule(name) for name in sorted(names)]

    def give(self, values: dict):
        """The way back; `values` has all of them. Who holds a view of one sees its values."""
        for name, tensor in self.tensors.items():
            tensor.data = self.held[name].copy_(values[name]) if name in self.held else values[name]
            delattr(tensor, OWNER)
        self.stand_ins.clear()
        self.held = {}
        for handle in self.handles:
            handle.remove()
        self.handles = []

    def check_untouched(self):
        """Raises InputError where somebody has written to the module while the ranks have its tensors."""
        self.check_kinds()
        tensors = self.tensors
        for name, stand_in in self.stand_ins.items():
            now = tensors[name]
            if now.shape != stand_in.shape or now.data_ptr() != stand_in.data_ptr() or not _is_fresh(stand_in):
                raise _changed(self.module, name)
            if now._version != self.versions[name]:
                raise _changed(self.module, f"a view of {name}")


def _changed(module, what):
    return InputError(type(module).__name__, f"{what} was changed while the ranks of a step have it",
                      "call step.module() first, then change it; the next step takes it over")


def _mark(dtype):
    if dtype.is_floating_point or dtype.is_complex:
        return float("nan")
    return 0 if dtype is torch.bool else torch.iinfo(dtype).min


def _stand_in(tensor):
    return torch.full((), _mark(tensor.dtype), dtype=tensor.dtype).expand(tensor.shape)


def _is_fresh(stand_in):
    if stand_in.numel() == 0:
        return True
    value = stand_in.as_strided((), ())
    return bool(value != value) if value.dtype.is_floating_point or value.dtype.is_complex else \
        value.item() == _mark(value.dtype)
