"""A PyTorch module and a batch -> one training step as a functional ATen graph.

Two passes, because functionalising a step while it is being differentiated does not work: the first traces forward,
loss and backward; the second replays that graph under functionalisation.
"""

import contextlib
import operator
from collections.abc import Mapping

import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException
from torch.fx.experimental.proxy_tensor import make_fx

from .errors import InputError
from .huggingface import traceable
from .inputs import Inputs
from .model import Model
from .origins import ROOT, Origin, Recorder, attach
from .writer import write

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
    name = getattr(getattr(module, "config", None), "model_type", None) or type(module).__name__
    return write(graph, inputs, name)


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
    with torch.enable_grad():
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

    def __init__(self, graph):
        super().__init__(graph)
        self.origin = Origin(ROOT, "input")

    def run_node(self, node):
        self.origin = node.meta.get("origin", self.origin)
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
        if node.op == "call_function" and node.target is not operator.getitem:
            _check_op(node.target)


def _check_op(target):
    if not isinstance(target, torch._ops.OpOverload):
        raise InputError(str(target), "this is not a single PyTorch op", "write it with plain tensor operations")
    if target._schema.is_mutable:
        raise InputError(str(target), "this op changes its inputs and has no functional form",
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
