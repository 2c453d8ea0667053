"""A functional graph -> the rows of docs/formats/model.md."""

import operator

import torch
from torch._subclasses.fake_tensor import FakeTensor

from .call import call_of_node
from ..errors import InputError
from .experiment import infer_rows
from .indexes import find_indexes
from ..model import Model, argument
from .names import name_nodes
from ..native import library
from .ranges import index_limit
from ..register import axes_of


# Their result is a bit beside the memory of the input, which only PyTorch looks at: the runtime copies it.
LAZY = (torch.ops.aten._conj.default, torch.ops.aten._neg_view.default)


def write(graph: torch.fx.GraphModule, inputs, name: str, infer: bool) -> Model:
    """infer: try ops without a row by experiment. REQUIRES: placeholders in the order of `inputs`, output (loss,
    {parameter: gradient}, {buffer: value}), and `meta["origin"]` on every call."""
    loss, gradients, buffers = next(iter(graph.graph.find_nodes(op="output"))).args[0]
    writer = _Writer(inputs, {name for name, gradient in gradients.items() if gradient is not None})
    for node, input_name, value in zip(graph.graph.find_nodes(op="placeholder"), inputs.names(), inputs.real):
        writer.add_input(node, input_name, value)
    for node in graph.graph.find_nodes(op="get_attr"):
        writer.add_constant(node, operator.attrgetter(node.target)(graph))
    calls = [n for n in graph.graph.nodes if n.op == "call_function" and n.target is not operator.getitem]
    names = name_nodes(calls)
    leading = _ancestors(loss)
    for node in calls:
        writer.add_op(node, names[node], backward=node not in leading)
    if infer:
        _add_inferred_rows(calls, writer.ops)
    return Model(name=name, tensors=writer.tensors, ops=writer.ops, loss=writer.ids[loss],
                 gradients=[[writer.by_name[p], writer.ids[g]] for p, g in gradients.items() if g is not None],
                 buffers=[[writer.by_name[b], writer.ids[v]] for b, v in buffers.items()
                          if writer.by_name[b] != writer.ids[v]],
                 seed=writer.ids.get(_seed(calls, loss, leading, gradients)),
                 constants=writer.constants, indexes=_indexes(graph, inputs, names))


def _add_inferred_rows(calls, ops):
    """`ops` are those of `calls`, in order."""
    tried = [(node, op) for node, op in zip(calls, ops) if "axes" not in op and not library().has_row(op["target"])]
    for (_, op), axes in zip(tried, infer_rows([call_of_node(node) for node, _ in tried])):
        if axes:
            op |= {"axes": axes, "inferred": True}


def _indexes(graph, inputs, names):
    placeholders = list(graph.graph.find_nodes(op="placeholder"))
    return find_indexes(graph.graph, dict(zip(placeholders[-len(inputs.batch):], inputs.batch)), names)


def _ancestors(*nodes):
    found, pending = set(), list(nodes)
    while pending:
        node = pending.pop()
        if node not in found:
            found.add(node)
            pending.extend(node.all_input_nodes)
    return found


def _seed(calls, loss, leading, gradients):
    """The ones that autograd starts with. A module may make some of its own, which lead to no gradient."""
    ones = [node for node in calls if node.target is torch.ops.aten.ones_like.default and node.args[0] is loss
            and node not in leading]
    behind = _ancestors(*(gradient for gradient in gradients.values() if gradient is not None))
    return next((node for node in ones if node in behind), None)


def _is_view(target):
    """Does the schema say that every result lies in the storage of the first tensor, unchanged?"""
    schema = target._schema
    if target in LAZY:
        return False
    first = next((a.alias_info for a in schema.arguments if "Tensor" in str(a.type)), None)
    return bool(first and not first.is_write and schema.returns and all(
        made.alias_info and made.alias_info.before_set & first.before_set for made in schema.returns))


class _Writer:
    def __init__(self, inputs, trained):
        self.inputs, self.trained = inputs, trained
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
            # One that is read but gets no gradient, as by .detach(), is what a frozen one is.
            frozen = node.users and name not in self.trained
            role = {"role": "parameter", "trainable": value.requires_grad and self.inputs.train and not frozen}
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
        if kwargs := {**node.kwargs, **_own_dtype(node)}:
            row["kwargs"] = {key: self._argument(value, name) for key, value in kwargs.items()}
        axes = axes_of(row["target"])
        view = not library().has_row(row["target"]) and _is_view(node.target)
        self.ops.append({**row, "out": out, **({"backward": True} if backward else {}), **({"axes": axes} if axes else {}),
                         **({"view": True} if view else {})})

    def _argument(self, value, op):
        return argument(value, op, self.written)


def _own_dtype(node):
    """The dtype that a tensor made from nothing took from the process (torch.set_default_dtype): ranks have their own."""
    made = node.meta["val"]
    taken = (isinstance(made, torch.Tensor) and made.is_floating_point() and made.dtype != torch.float32
             and not node.all_input_nodes and node.kwargs.get("dtype") is None
             and any(argument.name == "dtype" for argument in node.target._schema.arguments))
    return {"dtype": made.dtype} if taken else {}


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
