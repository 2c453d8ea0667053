"""Names of a module that mean the same memory. PyTorch changes all of them at once; a step keeps each name by itself."""

import itertools

import torch
from torch.utils._python_dispatch import _disable_current_modes

from ..errors import InputError

OWN = ("_parameters", "_buffers", "_modules")  # of every module: these have names already
CLONE = "give it memory of its own with .clone()"


def overlap(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Does an element of `a` lie where one of `b` lies? May say so of elements of different sizes that only lie close."""
    if a.untyped_storage()._cdata != b.untyped_storage()._cdata or not a.numel() or not b.numel():
        return False
    (first, end), (other, its_end) = _span(a), _span(b)
    if end <= other or its_end <= first:
        return False
    if a.element_size() != b.element_size() or a.is_contiguous() and b.is_contiguous():
        return True
    with _disable_current_modes():
        return bool(torch.isin(_places(a), _places(b)).any())


def _span(tensor):
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride()))
    first, size = tensor.storage_offset(), tensor.element_size()
    return first * size, (first + last + 1) * size


def _places(tensor):
    at = torch.tensor([tensor.storage_offset()])
    for size, stride in zip(tensor.shape, tensor.stride()):
        at = (at[:, None] + torch.arange(size) * stride).flatten()
    return at


ADDRESSING = (torch.ops.aten.as_strided.default, torch.ops.aten.as_strided_scatter.default)


def check_addressed(node):
    """Raises InputError where an op that names places in memory reads a tensor that is not all of its memory: ranks keep
    tensors dense, each in memory of its own."""
    if node.target not in ADDRESSING:
        return
    value = node.args[0].meta["val"]
    if value.storage_offset() or value.untyped_storage().nbytes() != value.numel() * value.element_size():
        where = node.meta["origin"].path if "origin" in node.meta else "forward"
        raise InputError(where, "as_strided reads a tensor that is a part of what lies in its memory, or has gaps there",
                         "give it x.contiguous(), with strides of that, or write it with slices, views and expand")


def check_batch_apart(batch: dict, written):
    """Raises InputError where a tensor of a batch that forward changes in place lies in the memory of another one."""
    for name in written:
        for other, value in batch.items():
            if other != name and name in batch and overlap(batch[name], value):
                raise InputError(f"batch {other}", f"it lies in the memory of {name}, which forward changes in place", CLONE)


def check_apart(params: dict, buffers: dict):
    """Raises InputError where one tensor is parameter and buffer."""
    owners = {id(parameter): name for name, parameter in params.items()}
    for name, buffer in buffers.items():
        if id(buffer) in owners:
            raise InputError(name, f"it is a buffer in the memory of the parameter {owners[id(buffer)]}", CLONE)


def check_named(params: dict, buffers: dict, constants: dict, changed):
    """Raises InputError where a tensor lies in the memory of another, and a step changes one of them.

    constants: by what a user would call them.
    """
    kinds = {**dict.fromkeys(params, "parameter"), **dict.fromkeys(buffers, "buffer"), **dict.fromkeys(constants, "constant")}
    for group in _by_storage({**params, **buffers, **constants}):
        for (one, its), (other, value) in itertools.combinations(group, 2):
            if (one in changed or other in changed) and overlap(its, value):
                raise InputError(other, f"it lies in the memory of the {kinds[one]} {one}, and a step changes one of them",
                                 CLONE)
    for name, value in {**buffers, **constants}.items():
        if value.grad_fn is not None:
            raise InputError(name, f"it was computed from other tensors ({value.grad_fn.name()}), and gradients would flow "
                             "there", "compute it in forward, or keep it with .detach().clone()")


def _by_storage(tensors: dict) -> list:
    """Only these can overlap: all pairs of a large model would be millions."""
    groups = {}
    for name, value in tensors.items():
        groups.setdefault(value.untyped_storage()._cdata, []).append((name, value))
    return list(groups.values())


class Kept:
    """Buffers at the end of forward, beside what they share memory with."""

    def __init__(self, module: torch.nn.Module):
        self.pairs = []  # of names that share memory: wrong only where a step writes to one of them in place
        groups = {}
        for name, value in module.named_buffers(remove_duplicate=False):
            groups.setdefault(id(value), []).append(name)
        self.tied = [names for names in groups.values() if len(names) > 1]

    def check_tied(self, module):
        """REQUIRES: forward has run, and its buffers are still in the module."""
        for first, *others in self.tied:
            for name in others:
                if _held(module, name, "_buffers") is not _held(module, first, "_buffers"):
                    raise InputError(name, f"{first} and {name} are one tensor, and forward puts another in the place of one",
                                     "write to it in place, or register two tensors")

    def check(self, before: dict, after: dict, trained: dict):
        """`before`, `after`: buffers by name. trained: parameters. What shared memory before is for check_named."""
        for name, value in after.items():
            _check_kind(name, before[name], value)
            for other, parameter in trained.items():
                if value is not before[name] and overlap(value, parameter):
                    raise InputError(name, f"forward puts it into the memory of the parameter {other}, which the optimizer "
                                     "changes after forward", CLONE)
        self.pairs = [(a, b) for a, b in itertools.combinations(after, 2)
                      if (after[a] is not before[a] or after[b] is not before[b]) and overlap(after[a], after[b])]

    def check_written(self, written):
        """written: names of buffers that a step changes in place."""
        for one, other in self.pairs:
            if one in written or other in written:
                raise InputError(one, f"forward puts it into the memory of the buffer {other}, and one of them is written in "
                                 "place", CLONE)


class Places:
    """Where tensors lie when forward begins."""

    def __init__(self, params: dict, buffers: dict):
        self.params, self.tensors = params, {**params, **buffers}
        self.at = {name: _place(value) for name, value in self.tensors.items()}

    def check(self, module):
        """Raises InputError where forward gave one of them other memory, or put another parameter in its place: no trace
        sees that."""
        for name, value in self.params.items():
            if _held(module, name, "_parameters") is not value:
                raise InputError(name, "forward puts another parameter in its place",
                                 "change parameters between steps, after step.module(), or compute with a new tensor")
        for name, value in self.tensors.items():
            if _place(value) != self.at[name]:
                raise InputError(name, "forward assigns its .data, which tracing does not see",
                                 "write to it in place between steps, after step.module(), or compute with a new tensor")


def _place(tensor):
    return tensor.untyped_storage()._cdata, tensor.storage_offset(), tuple(tensor.stride())


def _held(module, name, kind):
    path, _, leaf = name.rpartition(".")
    return getattr(module.get_submodule(path), kind).get(leaf)


def _check_kind(name, before, after):
    if not isinstance(after, torch.Tensor):
        raise InputError(name, f"forward puts {after!r} in the place of this buffer", "keep a tensor of the same shape there")
    if (after.shape, after.dtype) != (before.shape, before.dtype):
        raise InputError(name, f"forward puts {_kind(after)} in the place of this buffer, which is {_kind(before)}",
                         "register it with the shape and dtype that forward gives it")


def _kind(tensor):
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"


def name_of(module: torch.nn.Module, constant: torch.Tensor) -> str:
    """The attribute that holds this tensor, or one in its memory."""
    for path, part in module.named_modules():
        for name, value in vars(part).items():
            if name not in OWN and any(isinstance(item, torch.Tensor) and overlap(item, constant) for item in _items(value)):
                return f"{path}.{name}".lstrip(".")
    return "a tensor made outside of forward"


def _items(value):
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, (list, tuple)) else [value]


def check_constants_stay(graph: torch.fx.GraphModule, module):
    """Raises InputError where forward writes to a tensor that is neither parameter, buffer nor made by forward itself."""
    for node in graph.graph.nodes:
        for place in _changed(node):
            source = _storage_of(node.args[place])
            if source.op == "get_attr":
                where = name_of(module, getattr(graph, source.target))
                raise InputError(where, "forward changes it, and it is a constant of the step", "keep it with register_buffer")


def _changed(node):
    schema = getattr(node.target, "_schema", None)
    arguments = schema.arguments if schema is not None and node.op == "call_function" else []
    return [i for i, a in enumerate(arguments) if a.alias_info is not None and a.alias_info.is_write and i < len(node.args)
            and isinstance(node.args[i], torch.fx.Node)]


def _storage_of(node):
    """The node that made the memory in which the result of `node` lies."""
    while node.op == "call_function" and node.args and isinstance(node.args[0], torch.fx.Node):
        schema = getattr(node.target, "_schema", None)
        if schema is not None and not any(made.alias_info for made in schema.returns):
            break
        node = node.args[0]
    return node
