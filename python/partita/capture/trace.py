"""A PyTorch module and a batch -> one training step as a functional ATen graph.

Two passes, because functionalising a step while it is being differentiated does not work: the first traces forward,
loss and backward; the second replays that graph under functionalisation.
"""

import operator
import warnings

import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.utils.stateless import _reparametrize_module

from .apart import results_apart
from ..batches import tensors_of
from .cached import kept_formulas
from .eager_forms import EAGER_FORMS
from ..elsewhere import check_arrays
from ..errors import InputError
from .trace_errors import current_line, explained
from ..gradients import Gradients, check_dense, check_hooks, check_inputs
from .huggingface import traceable
from .inputs import Inputs, arguments_of, check_module
from .known import Known
from .losses import apply_loss, find_loss
from .memory import Kept, Places, check_addressed, check_apart, check_batch_apart, check_constants_stay, check_named, name_of
from ..model import Model
from .norms import check_norms
from .origins import RANDOM, ROOT, Origin, Recorder, attach
from .progress import Progress
from ..random import DRAWS, STATE, Draws, draws, refuse_others
from .recording import Recording
from .same_graph import constants_of, same_graph
from .scripted import scripted_as_written
from .stated_dtypes import state_dtypes
from .steady import check_moving, differs
from .untouched import Attributes, clear_caches, untouched
from .writer import write

aten = torch.ops.aten
ALIASES = (aten.detach.default, aten.alias.default, aten.lift_fresh_copy.default)
# Views that keep no record of being views, which a graph without mutations does not need.
PLAIN = {aten._unsafe_view.default: aten.view.default, aten.unsafe_split.Tensor: aten.split.Tensor,
         aten.unsafe_split_with_sizes.default: aten.split_with_sizes.default}
BATCH_NORMS = (aten._native_batch_norm_legit_functional.default, aten._native_batch_norm_legit.no_stats)


def capture(module: torch.nn.Module, batch, loss=None, bake: bool = False, progress: bool | None = None,
            infer: bool = True) -> Model:
    """Traces one training step of `module` on `batch`, as it runs in the autocast that surrounds the call.

    batch: a dict (keyword arguments of the module) or a tuple (positional ones) of tensors; other values are baked in.
    What forward does not take is for the loss.
    loss: a callable of (output, batch); or a loss module such as nn.CrossEntropyLoss(), which gets the output and the one
    tensor of the batch that forward does not take. None takes the output's `.loss`, or a scalar that the module returns
    (first).
    bake: keep what this batch does where the module looks at values of its inputs, with a warning, instead of an error.
    progress: a line on stderr while it runs; None shows it on a terminal.
    infer: try ops without a row by experiment, in another process; what they claim is in `inferred_ops`.
    The module is left as it was. It may be built on the CPU or under FakeTensorMode.
    """
    return _captured(module, batch, loss, bake, progress, infer, train=True)


def capture_evaluation(module: torch.nn.Module, batch, loss=None, bake: bool = False, infer: bool = True) -> Model:
    """The loss of `module` in its eval mode on `batch`: forward alone, nothing is trained and no buffer changes."""
    return _captured(module, batch, loss, bake, None, infer, train=False)


def _captured(module, batch, loss, bake, progress, infer, train):
    check_module(module)
    inputs = Inputs(module, batch, train)
    check_apart(inputs.params, inputs.buffers)
    check_arrays(module, {**inputs.params, **inputs.buffers})
    if train:
        check_hooks(inputs.params)
        check_inputs(inputs.batch)
        check_norms(module)
    if bake:
        inputs.check_values()
    reporter = Progress(progress)
    recorder = Recorder(module, reporter)
    with (inputs.mode, results_apart(inputs.mode), scripted_as_written(), untouched(module), traceable(module),
          recorder.hooks(), explained(recorder)):
        if not train:
            module.eval()
        kept = Kept(module)
        graph = _traced_for_good(module, inputs, loss, recorder, bake, kept)
        refuse_others(graph)
        with torch.autocast("cpu", enabled=False):
            graph = _functionalise(graph, inputs, reporter)
    reporter.end()
    written = _clean(graph.graph, inputs)
    kept.check_written(written)
    written &= {*inputs.batch}
    check_batch_apart(inputs.batch, written)
    state_dtypes(graph.graph)
    name = getattr(getattr(module, "config", None), "model_type", None) or type(module).__name__
    model = write(graph, inputs, name, infer)
    model.written_inputs = sorted(written)
    constants = {name_of(module, value): value for value in model.constants.values()}
    buffers = {name: value for name, value in inputs.buffers.items() if name != STATE}
    check_named(inputs.params, buffers, constants, {*model.trained, *model.updated_buffers})
    return model


def _traced_for_good(module, inputs, loss, recorder, bake, kept):
    """Every call of forward gives this graph, as far as a second and a third one tell."""
    before, formulas, calls = Attributes(module), {}, []
    graph = _trace(module, inputs, loss, recorder, bake, kept, formulas, calls)
    check_constants_stay(graph, module)
    constants, changed, first = constants_of(graph), before.changed(), Attributes(module)
    path = None if changed else _parts(module, inputs, loss, recorder, bake, calls)
    if not changed and not path:
        return graph
    try:
        recorder.begin()
        clear_caches()
        again = _trace(module, inputs, loss, recorder, bake, Kept(module), {}, calls)
    except Exception as error:
        raise differs(changed, path) from error
    if not same_graph(graph, constants, again, formulas) or len(calls) > 2 and calls[1].differs(calls[2]):
        raise differs(changed, path)
    check_moving(module, first, lambda: _recorded(module, inputs, loss, recorder, bake))
    return graph


def _parts(module, inputs, loss, recorder, bake, calls):
    """Where a second call makes other ops than the first; only a trace tells whether they matter. calls: gets it."""
    try:
        calls.append(_recorded(module, inputs, loss, recorder, bake))
        return calls[0].differs(calls[1])
    except Exception:  # what needs a trace to run
        return recorder.path


def _recorded(module, inputs, loss, recorder, bake):
    """The ops of forward and loss, called once more."""
    recorder.begin()
    clear_caches()
    values = [value.detach() for value in inputs.fakes]
    params, buffers, batch = inputs.split(values)
    params = {name: value.requires_grad_(inputs.train and inputs.params[name].requires_grad) for name, value in params.items()}
    args, keywords, rest = arguments_of(module, batch, loss)
    state, known = {**params, **buffers}, Known(zip(values, inputs.real) if bake else ())
    calls = Recording([*state.values(), *tensors_of(batch).values()], lambda: recorder.path)
    with torch.set_grad_enabled(inputs.train), known, _reparametrize_module(module, state, tie_weights=True), calls:
        _loss_of(module(*args, **keywords), batch, rest, loss, module)
    return calls


def _trace(module, inputs, loss, recorder, bake, kept, formulas, calls):
    """formulas: gets those of the constants that the trace leaves in the module. calls: gets the ops of forward and loss."""
    trainable = [name for name, p in inputs.params.items() if p.requires_grad and inputs.train]
    if inputs.train and not trainable:
        raise InputError(type(module).__name__, "no parameter requires a gradient", "set requires_grad on some")

    def step(*values):
        attach(recorder.origin_of)
        with Known(zip(values, inputs.real) if bake else (), lambda op: _tell_baked(recorder, op)):
            made = differentiated(*inputs.split(values))
        formulas.update(kept_formulas(module))
        return made

    def differentiated(params, buffers, batch):
        params = {name: p.detach().requires_grad_() if name in trainable else p for name, p in params.items()}
        args, keywords, rest = arguments_of(module, batch, loss)
        state = {**params, **buffers}
        places, left = Places(params, buffers), Gradients(state, inputs.params, inputs.buffers)
        # As torch.func.functional_call, but until backward ends: a checkpoint runs its part of the module again there.
        calls.append(Recording([*state.values(), *tensors_of(batch).values()], lambda: recorder.path))
        with _reparametrize_module(module, state, tie_weights=True):
            with calls[-1]:
                output = module(*args, **keywords)
                places.check(module)
                value = _loss_of(output, batch, rest, loss, module)
            left.check()
            if loss is None:
                recorder.loss_inside_module()
            if not inputs.train:
                return value, {}, buffers
            _check_trains(value, module)
            recorder.begin_backward(value)
            with torch.autocast("cpu", enabled=False):  # the usual place of backward() is after the block of autocast
                gradients = torch.autograd.grad(value, [params[name] for name in trainable], allow_unused=True)
            left.check()
            check_dense(dict(zip(trainable, gradients)))
            kept.check_tied(module)
        # A module may put a new tensor in the place of a buffer.
        after = {name: state[name] for name in buffers}
        kept.check(buffers, after, {name: params[name] for name in trainable})
        return value.detach(), dict(zip(trainable, gradients)), after

    with torch.set_grad_enabled(inputs.train):
        graph = make_fx(step, decomposition_table=EAGER_FORMS)(*(t.detach() for t in inputs.fakes))
    graph.graph.eliminate_dead_code()
    return graph


def _tell_baked(recorder, op):
    warnings.warn(f"capture: {recorder.path} at {current_line()} decides by values of its inputs ({op}); the step keeps "
                  "what this batch does", stacklevel=2)


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


def _clean(graph, inputs):
    """Drops aliases and dead code; a final copy into a placeholder becomes the output it stands for.

    Returns the names of the inputs that are written in place.
    """
    names, written = dict(zip(graph.find_nodes(op="placeholder"), inputs.names())), set()
    for node in list(graph.nodes):
        if node.op != "call_function":
            continue
        if node.target in ALIASES:
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)
        elif node.target is aten.copy_.default and names.get(node.args[0]) in inputs.params:
            raise InputError(node.meta["origin"].path if "origin" in node.meta else "forward",
                             f"forward changes the parameter {names[node.args[0]]} itself, which only the optimizer may",
                             "change it between steps, after step.module()")
        elif node.target is aten.copy_.default and node.args[0].op == "placeholder":
            written.add(names[node.args[0]])
            node.replace_all_uses_with(node.args[1])
            graph.erase_node(node)
        elif node.target in PLAIN:
            node.target = PLAIN[node.target]
        elif node.target is aten.native_batch_norm_backward.default:
            _forget_empty_statistics(node)
        elif node.target in BATCH_NORMS:
            _forget_unchanged_statistics(node)
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
            check_addressed(node)
    return written


def _forget_empty_statistics(node):
    """A frozen batch norm saves no statistics of the batch: empty tensors, which its gradient does not read."""
    args = list(node.args)
    for place in (5, 6):
        if isinstance(args[place], torch.fx.Node) and args[place].meta["val"].numel() == 0:
            args[place] = None
    node.args = tuple(args)


def _forget_unchanged_statistics(node):
    """A frozen batch norm gives its running values back as they are."""
    if node.target is BATCH_NORMS[0] and node.args[5] is False:
        for user in [user for user in node.users if user.args[1] in (3, 4)]:
            user.replace_all_uses_with(node.args[user.args[1]])


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
