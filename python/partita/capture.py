"""A PyTorch module and a batch -> one training step as a functional ATen graph.

Two passes, because functionalising a step while it is being differentiated does not work: the first traces forward,
loss and backward; the second replays that graph under functionalisation.
"""

import operator
import warnings

import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.utils.stateless import _reparametrize_module

from .errors import InputError
from .explain import current_line, explained
from .huggingface import traceable
from .inputs import Inputs, arguments_of, check_module
from .known import Known
from .losses import apply_loss, find_loss
from .model import Model
from .origins import RANDOM, ROOT, Origin, Recorder, attach
from .progress import Progress
from .random import DRAWS, STATE, Draws, draws, refuse_others
from .untouched import untouched
from .writer import write

aten = torch.ops.aten
ALIASES = (aten.detach.default, aten.alias.default, aten.lift_fresh_copy.default)
# Views that keep no record of being views, which a graph without mutations does not need.
PLAIN = {aten._unsafe_view.default: aten.view.default, aten.unsafe_split.Tensor: aten.split.Tensor,
         aten.unsafe_split_with_sizes.default: aten.split_with_sizes.default}
BATCH_NORMS = (aten._native_batch_norm_legit_functional.default, aten._native_batch_norm_legit.no_stats)


def capture(module: torch.nn.Module, batch, loss=None, bake: bool = False, progress: bool | None = None) -> Model:
    """Traces one training step of `module` on `batch`, as it runs in the autocast that surrounds the call.

    batch: a dict (keyword arguments of the module) or a tuple (positional ones) of tensors; other values are baked in.
    What forward does not take is for the loss.
    loss: a callable of (output, batch); or a loss module such as nn.CrossEntropyLoss(), which gets the output and the one
    tensor of the batch that forward does not take. None takes the output's `.loss`, or a scalar that the module returns
    (first).
    bake: keep what this batch does where the module looks at values of its inputs, with a warning, instead of an error.
    progress: a line on stderr while it runs; None shows it on a terminal.
    The module is left as it was. It may be built on the CPU or under FakeTensorMode.
    """
    return _captured(module, batch, loss, bake, progress, train=True)


def capture_evaluation(module: torch.nn.Module, batch, loss=None, bake: bool = False) -> Model:
    """The loss of `module` in its eval mode on `batch`: forward alone, nothing is trained and no buffer changes."""
    return _captured(module, batch, loss, bake, None, train=False)


def _captured(module, batch, loss, bake, progress, train):
    check_module(module)
    inputs = Inputs(module, batch, train)
    if bake:
        inputs.check_values()
    reporter = Progress(progress)
    recorder = Recorder(module, reporter)
    with inputs.mode, untouched(module), traceable(module), recorder.hooks(), explained(recorder):
        if not train:
            module.eval()
        graph = _trace(module, inputs, loss, recorder, bake)
        refuse_others(graph)
        with torch.autocast("cpu", enabled=False):
            graph = _functionalise(graph, inputs, reporter)
    reporter.end()
    _clean(graph.graph, len(inputs.params))
    name = getattr(getattr(module, "config", None), "model_type", None) or type(module).__name__
    return write(graph, inputs, name)


def _trace(module, inputs, loss, recorder, bake):
    trainable = [name for name, p in inputs.params.items() if p.requires_grad and inputs.train]
    if inputs.train and not trainable:
        raise InputError(type(module).__name__, "no parameter requires a gradient", "set requires_grad on some")

    def step(*values):
        attach(recorder.origin_of)
        with Known(zip(values, inputs.real) if bake else (), lambda op: _tell_baked(recorder, op)):
            return differentiated(*inputs.split(values))

    def differentiated(params, buffers, batch):
        params = {name: p.detach().requires_grad_() if name in trainable else p for name, p in params.items()}
        args, keywords, rest = arguments_of(module, batch, loss)
        state = {**params, **buffers}
        # As torch.func.functional_call, but until backward ends: a checkpoint runs its part of the module again there.
        with _reparametrize_module(module, state, tie_weights=True):
            output = module(*args, **keywords)
            value = _loss_of(output, batch, rest, loss, module)
            if loss is None:
                recorder.loss_inside_module()
            if not inputs.train:
                return value, {}, buffers
            _check_trains(value, module)
            recorder.begin_backward(value)
            with torch.autocast("cpu", enabled=False):  # the usual place of backward() is after the block of autocast
                gradients = torch.autograd.grad(value, [params[name] for name in trainable], allow_unused=True)
        # A module may put a new tensor in the place of a buffer.
        return value.detach(), dict(zip(trainable, gradients)), {name: state[name] for name in buffers}

    # native_batch_norm's schema hides that it changes its buffers; _legit says so.
    with torch.set_grad_enabled(inputs.train):
        graph = make_fx(step, decomposition_table={aten.native_batch_norm.default: _batch_norm})(*inputs.fakes)
    graph.graph.eliminate_dead_code()
    return graph


def _tell_baked(recorder, op):
    warnings.warn(f"capture: {recorder.path} at {current_line()} decides by values of its inputs ({op}); the step keeps "
                  "what this batch does", stacklevel=2)


def _batch_norm(x, weight, bias, mean, var, training, momentum, eps):
    if mean is None:
        return aten._native_batch_norm_legit.no_stats(x, weight, bias, training, momentum, eps)
    return aten._native_batch_norm_legit.default(x, weight, bias, mean, var, training, momentum, eps)


def _loss_of(output, batch, rest, loss, module):
    where = f"loss of {type(module).__name__}"
    value = find_loss(output) if loss is None else apply_loss(loss, output, batch, rest, where)
    if value is None:
        raise InputError(where, f"the output ({_kind(output)}) has no .loss and is no scalar",
                         "put the labels into the batch, or give loss=, a callable of (output, batch) or a loss module")
    if not isinstance(value, torch.Tensor):
        raise InputError(where, f"it is a {type(value).__name__}", "return a tensor with one element")
    if value.dim() != 0:
        raise InputError(where, f"it has shape {list(value.shape)}", "return a scalar, such as its mean or sum")
    return value


def _check_trains(value, module):
    if not value.requires_grad:
        raise InputError(f"loss of {type(module).__name__}", "it does not depend on any trainable parameter",
                         "check detach() and no_grad()")


def _kind(output) -> str:
    return f"tensor of shape {list(output.shape)}" if isinstance(output, torch.Tensor) else type(output).__name__


class _Replay(torch.fx.Interpreter):
    """Runs the first graph; what each of its nodes becomes keeps that node's origin. Random ops draw from `draws`."""

    def __init__(self, graph, draws, progress):
        super().__init__(graph)
        self.origin = Origin(ROOT, "input")
        self.draws, self.progress = draws, progress

    def origin_of(self, target):
        self.progress.tick("functional form", self.origin.path)
        return self.origin

    def run_node(self, node):
        self.origin = node.meta.get("origin", self.origin)
        return super().run_node(node)

    def call_function(self, target, args, kwargs):
        if target in DRAWS:
            return self.draws.replace(target, args, kwargs)
        return super().call_function(target, args, kwargs)


def _functionalise(graph, inputs, progress):
    progress.begin()
    if draws(graph):
        inputs.add_random_state()
    random = STATE in inputs.buffers

    def replay(*values):
        interpreter = _Replay(graph, Draws(values[inputs.position(STATE)]) if random else None, progress)
        attach(interpreter.origin_of)
        traced = [v for i, v in enumerate(values) if not random or i != inputs.position(STATE)]
        loss, gradients, buffers = interpreter.run(*traced)
        if random:
            interpreter.origin = Origin(RANDOM, "state")
            buffers = {**buffers, STATE: interpreter.draws.next_state()}
        return loss, gradients, buffers

    with torch.no_grad():
        return make_fx(torch.func.functionalize(replay, remove="mutations"))(*(t.detach() for t in inputs.fakes))


def _clean(graph, parameters):
    """Drops aliases and dead code; a final copy into a placeholder becomes the output it stands for.

    parameters: how many of the first placeholders are parameters.
    """
    fixed = list(graph.find_nodes(op="placeholder"))[:parameters]
    for node in list(graph.nodes):
        if node.op != "call_function":
            continue
        if node.target in ALIASES:
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
        elif node.target is aten.copy_.default and node.args[0] in fixed:
            raise InputError(node.meta["origin"].path if "origin" in node.meta else "forward",
                             f"forward changes the parameter {node.args[0].name} itself, which only the optimizer may",
                             "change it between steps, after step.module()")
        elif node.target is aten.copy_.default and node.args[0].op == "placeholder":
            node.replace_all_uses_with(node.args[1])
            graph.erase_node(node)
        elif node.target in PLAIN:
            node.target = PLAIN[node.target]
        elif node.target is aten.native_batch_norm_backward.default:
            _forget_empty_statistics(node)
        elif node.target in BATCH_NORMS:
            _keep_statistics_in_float32(node)
        elif node.target is aten.copy.default and _overwrites(node):
            # What is overwritten is not read: an op that only makes room for it goes away.
            node.target, node.args = aten._to_copy.default, (node.args[1],)
            node.kwargs = {"dtype": node.meta["val"].dtype}
    for node in reversed(list(graph.nodes)):
        if node.op in ("call_function", "get_attr") and not node.users:
            graph.erase_node(node)
    for node in graph.nodes:
        if node.op == "call_function" and node.target is not operator.getitem:
            _check_op(node.target)


def _forget_empty_statistics(node):
    """A frozen batch norm saves no statistics of the batch: empty tensors, which its gradient does not read."""
    args = list(node.args)
    for place in (5, 6):
        if isinstance(args[place], torch.fx.Node) and args[place].meta["val"].numel() == 0:
            args[place] = None
    node.args = tuple(args)


def _keep_statistics_in_float32(node):
    """Kernels for half precision beside float32 parameters or running values keep mean and deviation in float32; their
    fake versions say half."""
    others = [arg.meta["val"].dtype for arg in node.all_input_nodes[1:]]
    if node.args[0].meta["val"].dtype not in (torch.bfloat16, torch.float16) or torch.float32 not in others:
        return
    made, mean, deviation, *rest = node.meta["val"]
    node.meta["val"] = (made, mean.to(torch.float32), deviation.to(torch.float32), *rest)


def _overwrites(node):
    """Is the copied value laid out like the result, so that a change of dtype is all there is to it?"""
    source, made = node.args[1].meta["val"], node.meta["val"]
    return source.shape == made.shape and source.stride() == made.stride()


def _check_op(target):
    if not isinstance(target, torch._ops.OpOverload):
        raise InputError(str(target), "this is not a single PyTorch op", "write it with plain tensor operations")
    if target._schema.is_mutable:
        raise InputError(str(target), "this op changes its inputs and has no functional form",
                         "use the form of it that returns a new tensor")
