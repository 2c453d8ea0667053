"""A functional graph -> the rows of docs/formats/model.md."""

import operator

import torch
from torch._subclasses.fake_tensor import FakeTensor

from .errors import InputError
from .indexes import find_indexes
from .model import Model, argument
from .names import name_nodes
from .ranges import index_limit
from .register import axes_of


def write(graph: torch.fx.GraphModule, inputs, name: str) -> Model:
    """REQUIRES: placeholders in the order of `inputs`, output (loss, {parameter: gradient}, {buffer: value}), and
    `meta["origin"]` on every call."""
    writer = _Writer(inputs)
    for node, input_name, value in zip(graph.graph.find_nodes(op="placeholder"), inputs.names(), inputs.real):
        writer.add_input(node, input_name, value)
    for node in graph.graph.find_nodes(op="get_attr"):
        writer.add_constant(node, operator.attrgetter(node.target)(graph))
    calls = [n for n in graph.graph.nodes if n.op == "call_function" and n.target is not operator.getitem]
    names = name_nodes(calls)
    loss, gradients, buffers = next(iter(graph.graph.find_nodes(op="output"))).args[0]
    leading = _ancestors(loss)
    for node in calls:
        writer.add_op(node, names[node], backward=node not in leading)
    return Model(name=name, tensors=writer.tensors, ops=writer.ops, loss=writer.ids[loss],
                 gradients=[[writer.by_name[p], writer.ids[g]] for p, g in gradients.items() if g is not None],
                 buffers=[[writer.by_name[b], writer.ids[v]] for b, v in buffers.items()
                          if writer.by_name[b] != writer.ids[v]],
                 constants=writer.constants, indexes=_indexes(graph, inputs, names))


def _indexes(graph, inputs, names):
    placeholders = list(graph.graph.find_nodes(op="placeholder"))
    return find_indexes(graph.graph, dict(zip(placeholders[-len(inputs.batch):], inputs.batch)), names)


def _ancestors(node):
    found, pending = set(), [node]
    while pending:
        node = pending.pop()
        if node not in found:
            found.add(node)
            pending.extend(node.all_input_nodes)
    return found


class _Writer:
    def __init__(self, inputs):
        self.inputs = inputs
        self.tensors, self.ops, self.constants = [], [], {}
        self.ids = {}       # node -> its tensor
        self.by_name = {}   # parameter, buffer or batch input -> its tensor
        self.written = {}   # node -> how an argument names it

    def _add(self, name, value, **more):
        self.tensors.append({"name": name, "shape": list(value.shape), "stride": list(value.stride()),
                             "dtype": str(value.dtype).removeprefix("torch."), **more})
        return len(self.tensors) - 1

    def _stands_for(self, node, tensor):
        self.ids[node] = tensor
        self.written[node] = f"%{tensor}"

    def add_input(self, node, name, value):
        if len(self.tensors) < len(self.inputs.params):
            role = {"role": "parameter", "trainable": value.requires_grad and self.inputs.train}
        elif len(self.tensors) < len(self.inputs.params) + len(self.inputs.buffers):
            role = {"role": "buffer"}
        else:
            role = {"role": "batch", **_range(node, name, value)}
            name = f"batch.{name}" if name in self.by_name else name
        self.by_name[name] = self._add(name, value, **role)
        self._stands_for(node, self.by_name[name])

    def add_constant(self, node, value):
        if isinstance(value, FakeTensor):
            raise InputError(node.target, "a constant of the module has no value, as it was made under FakeTensorMode",
                             "register it as a buffer")
        name = f"constant.{len(self.constants)}"
        self.constants[name] = value
        self._stands_for(node, self._add(name, value, role="constant"))

    def add_op(self, node, name, backward):
        results = node.meta["val"]
        several = isinstance(results, (list, tuple))
        out = []
        for place, value in enumerate(results if several else [results]):
            # A whole number among the outputs is known now, so its readers get it as a plain value.
            made = self._add(f"{name}:{place}", value) if isinstance(value, torch.Tensor) else None
            out.append(made)
            for reader in [user for user in node.users if user.args[1] == place] if several else [node]:
                self._stands_for(reader, made)
                if made is None:
                    self.written[reader] = value
        row = {"name": name, "target": str(node.target), "args": self._argument(node.args, name)}
        if node.kwargs:
            row["kwargs"] = {key: self._argument(value, name) for key, value in node.kwargs.items()}
        axes = axes_of(row["target"])
        self.ops.append({**row, "out": out, **({"backward": True} if backward else {}), **({"axes": axes} if axes else {})})

    def _argument(self, value, op):
        return argument(value, op, self.written)


def _range(node, name, value):
    if value.dtype.is_floating_point or value.dtype.is_complex:
        return {}
    limit = index_limit(node)
    if limit is not None:
        return {"range": [0, limit]}
    if isinstance(value, FakeTensor) or value.numel() == 0:
        raise InputError(name, "its range of values cannot be seen: it indexes nothing and holds no values",
                         "give a real tensor with typical values")
    return {"range": [int(value.min()), int(value.max()) + 1]}
