"""A PyTorch module and a batch -> one training step as a functional ATen graph.

Two passes, because functionalising a step while it is being differentiated does not work: the first traces forward,
loss and backward; the second replays that graph under functionalisation.
"""

import contextlib
import inspect
import operator
from collections.abc import Mapping

import torch
from torch._subclasses.fake_tensor import (DataDependentOutputException, DynamicOutputShapeException, FakeTensor,
                                           FakeTensorMode)
from torch.fx.experimental.proxy_tensor import make_fx

from .errors import InputError
from .huggingface import traceable
from .model import Model, argument
from .names import name_nodes
from .origins import Recorder, attach
from .ranges import index_limit

aten = torch.ops.aten
ALIASES = (aten.detach.default, aten.alias.default, aten.lift_fresh_copy.default)


def capture(module: torch.nn.Module, batch, loss=None) -> Model:
    """Traces one training step of `module` on `batch`.

    batch: a dict (keyword arguments of the module) or a tuple (positional ones) of tensors; other values are baked in.
    loss: a callable of (output, batch); None takes the output's `.loss`.
    The module is left as it was. It may be built on the CPU or under FakeTensorMode.
    """
    inputs = Inputs(module, batch)
    recorder = Recorder(module)
    with inputs.mode, traceable(module), recorder.hooks(), _explained(recorder):
        graph = _trace(module, inputs, loss, recorder)
        graph = _functionalise(graph, inputs)
    _clean(graph.graph)
    return _model(graph, inputs, module)


class Inputs:
    """The tensors a step reads, real and fake, in the order of the graph's placeholders."""

    def __init__(self, module, batch):
        if not isinstance(module, torch.nn.Module):
            raise InputError("capture", f"module is a {type(module).__name__}", "give a torch.nn.Module")
        self.params = dict(module.named_parameters())  # a tied weight comes out once
        self.buffers = dict(module.named_buffers())
        self.batch_form = batch
        self.batch = {name: value for name, value in _named(module, batch).items() if isinstance(value, torch.Tensor)}
        if not self.batch:
            raise InputError("batch", "it holds no tensor", "give the module's inputs, such as {'input_ids': ids}")
        self.real = [*self.params.values(), *self.buffers.values(), *self.batch.values()]
        self._check_devices()
        modes = (value.fake_mode for value in self.real if isinstance(value, FakeTensor))
        self.mode = next(modes, None) or FakeTensorMode(allow_non_fake_inputs=True)
        self.fakes = [self._fake(value) for value in self.real]

    def _fake(self, value):
        return value if isinstance(value, FakeTensor) else self.mode.from_tensor(value, static_shapes=True)

    def _check_devices(self):
        for name, value in zip(self.names(), self.real):
            if value.device.type != "cpu":
                raise InputError(name, f"it is on device {value.device}",
                                 "capture on the cpu, or build module and batch under FakeTensorMode")

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


def _named(module, batch) -> dict:
    if isinstance(batch, Mapping):
        return dict(batch)
    if not isinstance(batch, tuple):
        raise InputError("batch", f"it is a {type(batch).__name__}",
                         "give a dict of keyword arguments or a tuple of positional arguments")
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    known = [name for name, p in inspect.signature(module.forward).parameters.items() if p.kind in kinds]
    return {known[i] if i < len(known) else f"input.{i}": value for i, value in enumerate(batch)}


def _trace(module, inputs, loss, recorder):
    trainable = [name for name, p in inputs.params.items() if p.requires_grad]
    if not trainable:
        raise InputError(type(module).__name__, "no parameter requires a gradient", "set requires_grad on some")

    def step(*values):
        attach(recorder.origin_of)
        params, buffers, batch = inputs.split(values)
        params = {name: p.detach().requires_grad_() if name in trainable else p for name, p in params.items()}
        keywords = batch if isinstance(batch, Mapping) else {}
        output = torch.func.functional_call(module, (params, buffers), () if keywords else batch, keywords)
        value = _loss_of(output, batch, loss, module)
        if loss is None:
            recorder.loss_inside_module()
        recorder.begin_backward(value)
        gradients = torch.autograd.grad(value, [params[name] for name in trainable], allow_unused=True)
        return value.detach(), dict(zip(trainable, gradients)), buffers

    # native_batch_norm's schema hides that it changes its buffers; _legit says so.
    graph = make_fx(step, decomposition_table={aten.native_batch_norm.default: _batch_norm})(*inputs.fakes)
    graph.graph.eliminate_dead_code()
    return graph


def _batch_norm(x, weight, bias, mean, var, training, momentum, eps):
    if mean is None:
        return aten._native_batch_norm_legit.no_stats(x, weight, bias, training, momentum, eps)
    return aten._native_batch_norm_legit.default(x, weight, bias, mean, var, training, momentum, eps)


def _loss_of(output, batch, loss, module):
    where = f"loss of {type(module).__name__}"
    if loss is not None:
        value = loss(output, batch)
    else:
        value = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
        if value is None:
            raise InputError(where, f"the output ({type(output).__name__}) has no .loss",
                             "put the labels into the batch, or give loss=, a callable of (output, batch)")
    if not isinstance(value, torch.Tensor):
        raise InputError(where, f"it is a {type(value).__name__}", "return a tensor with one element")
    if value.dim() != 0:
        raise InputError(where, f"it has shape {list(value.shape)}", "return a scalar, such as its mean or sum")
    if not value.requires_grad:
        raise InputError(where, "it does not depend on any trainable parameter", "check detach() and no_grad()")
    return value


class _Replay(torch.fx.Interpreter):
    """Runs the first graph; what each of its nodes becomes keeps that node's origin."""

    def run_node(self, node):
        self.origin = node.meta.get("origin", getattr(self, "origin", None))
        return super().run_node(node)


def _functionalise(graph, inputs):
    def replay(*values):
        interpreter = _Replay(graph)
        attach(lambda target: interpreter.origin)
        return interpreter.run(*values)

    with torch.no_grad():
        return make_fx(torch.func.functionalize(replay, remove="mutations"))(*(t.detach() for t in inputs.fakes))


def _clean(graph):
    """Drops aliases and dead code; a final copy into a placeholder becomes the output it stands for."""
    for node in list(graph.nodes):
        if node.op != "call_function":
            continue
        if node.target in ALIASES:
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
        elif node.target is aten.copy_.default and node.args[0].op == "placeholder":
            node.replace_all_uses_with(node.args[1])
            graph.erase_node(node)
        elif node.target is aten._unsafe_view.default:
            node.target = aten.view.default
    for node in reversed(list(graph.nodes)):
        if node.op in ("call_function", "get_attr") and not node.users:
            graph.erase_node(node)
    for node in graph.nodes:
        if getattr(getattr(node.target, "_schema", None), "is_mutable", False):
            raise InputError(str(node.target), "this op changes its inputs and has no functional form",
                             "use the form of it that returns a new tensor")


@contextlib.contextmanager
def _explained(recorder):
    """Turns the tracer's complaints about data into a sentence with the module it happened in."""
    remedy = "compute it outside the module, or write it with torch.where and fixed shapes"
    try:
        yield
    except DataDependentOutputException as error:
        raise InputError(recorder.path, f"{error.func} reads a value of a tensor, so the graph would depend on data",
                         remedy) from error
    except DynamicOutputShapeException as error:
        raise InputError(recorder.path, f"the shape of the result of {error.func} depends on data", remedy) from error


def _model(graph, inputs, module) -> Model:
    writer = _Writer(inputs)
    for node, name, value in zip(graph.graph.find_nodes(op="placeholder"), inputs.names(), inputs.real):
        writer.add_input(node, name, value)
    for node in graph.graph.find_nodes(op="get_attr"):
        writer.add_constant(node, graph)
    calls = [n for n in graph.graph.nodes if n.op == "call_function" and n.target is not operator.getitem]
    names = name_nodes(calls)
    for node in calls:
        writer.add_op(node, names[node])
    loss, gradients, buffers = next(iter(graph.graph.find_nodes(op="output"))).args[0]
    writer.mark_backward(loss)
    config = getattr(module, "config", None)
    return Model(name=getattr(config, "model_type", None) or type(module).__name__, tensors=writer.tensors,
                 ops=writer.ops, loss=writer.ids[loss],
                 gradients=writer.pairs(gradients, inputs.params), buffers=writer.pairs(buffers, inputs.buffers),
                 constants=writer.constants)


class _Writer:
    """Builds the rows of the file; `ids` maps graph nodes to their tensor."""

    def __init__(self, inputs):
        self.inputs = inputs
        self.tensors, self.ops, self.ids, self.constants = [], [], {}, {}
        self.input_ids = {}  # name of a parameter or buffer -> its tensor

    def _add(self, name, value, **more):
        self.tensors.append({"name": name, "shape": list(value.shape), "stride": list(value.stride()),
                             "dtype": str(value.dtype).removeprefix("torch."), **more})
        return len(self.tensors) - 1

    def add_input(self, node, name, value):
        if len(self.tensors) < len(self.inputs.params):
            role = {"role": "parameter", "trainable": value.requires_grad}
        elif len(self.tensors) < len(self.inputs.params) + len(self.inputs.buffers):
            role = {"role": "buffer"}
        else:
            role = {"role": "batch", **_range(node, name, value)}
            name = f"batch.{name}" if name in self.input_ids else name
        self.ids[node] = self.input_ids[name] = self._add(name, value, **role)

    def add_constant(self, node, graph):
        value = operator.attrgetter(node.target)(graph)
        if isinstance(value, FakeTensor):
            raise InputError(node.target, "a constant of the module has no value, as it was made under FakeTensorMode",
                             "register it as a buffer")
        name = f"constant.{len(self.constants)}"
        self.constants[name] = value
        self.ids[node] = self._add(name, value, role="constant")

    def add_op(self, node, name):
        value = node.meta["val"]
        values = list(value) if isinstance(value, (list, tuple)) else [value]
        out = [self._add(f"{name}:{i}", v) if isinstance(v, torch.Tensor) else None for i, v in enumerate(values)]
        if isinstance(value, (list, tuple)):
            for user in node.users:
                self.ids[user] = out[user.args[1]]
        else:
            self.ids[node] = out[0]
        row = {"name": name, "target": str(node.target), "args": argument(node.args, self.ids.__getitem__)}
        if node.kwargs:
            row["kwargs"] = {key: argument(v, self.ids.__getitem__) for key, v in node.kwargs.items()}
        self.ops.append({**row, "out": out, "node": node})

    def mark_backward(self, loss):
        leading, pending = set(), [loss]
        while pending:
            node = pending.pop()
            if node not in leading:
                leading.add(node)
                pending.extend(node.all_input_nodes)
        for row in self.ops:
            if row.pop("node") not in leading:
                row["backward"] = True

    def pairs(self, values, owners):
        """(owner, its new value) for every owner that has a new value."""
        pairs = [(self.input_ids[name], self.ids[values[name]]) for name in owners if values.get(name) is not None]
        return [[old, new] for old, new in pairs if old != new]


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
