"""A module and an optimizer -> a training step on many ranks."""

import math
import os
import warnings
from pathlib import Path

import torch

from .batches import batch_of, check_tensors
from .capture import capture
from .errors import InputError
from .guard import owner_of
from .capture.inputs import check_module
from .optimizers import describe, trained_only
from .plan import Plan, plan as find_plan
from .precision import PRECISIONS, check_loss_scale, check_precision
from .shapes import Planner
from .step import Step


def parallelize(module: torch.nn.Module, batch, optimizer, plan: Plan | str | None = None, cluster: str | None = None,
                memory: str | None = None, ranks: int | None = None, loss=None, threads: int = 0,
                clip: float | None = None, precision: str | None = None, calibration: str | None = None,
                bake: bool = False, infer: bool = True, strict: bool = False) -> Step:
    """Captures `module` on `batch`, plans it for `cluster` unless a plan is given, and starts its ranks as threads.

    The step has the parameters and the optimizer's states: `step.module()` gives them back, and the next step takes them
    over again. What a scheduler changes in `optimizer` (lr, weight decay, betas of any group) counts from the next step
    on. An optimizer that has taken steps keeps its states.
    batch: a dict, a tuple or a list of tensors; what forward does not take is for the loss.
    plan: a Plan, or the path of its file. It decides where ranks run; `clip` and `precision` count before what it says,
    and the optimizer's settings always do.
    ranks: short for cluster="<ranks>xcpu".
    loss: a callable of (output, batch), or a loss module such as nn.CrossEntropyLoss(); None takes the output's `.loss`.
    threads: of each rank; 0 shares the threads torch has among the ranks.
    clip: largest norm of all gradients together, as torch.nn.utils.clip_grad_norm_ before each optimizer step.
    precision: "bf16" or "fp16" for a module in that dtype: the optimizer updates float32 copies of its parameters, and
    fp16 gradients are scaled. For a float32 module use torch.autocast in its forward.
    calibration: a file of `partita calibrate`; plans are then ranked by what this machine takes.
    bake: keep what this batch does where forward decides by values of its inputs.
    infer: split ops without a row by rows that experiments find (docs/capture.md).
    strict: where the planner finds a plan that fails a check of partita's own, raise; without it, that plan is left out
    with a warning, and the next best is taken.
    """
    _check_alone()
    check_module(module)
    if owner_of(module) is not None:
        raise InputError(type(module).__name__, "its parameters are with the ranks of another step",
                         "call module() of that step first, or go on with that step")
    batch = batch_of((batch,), {})
    check_tensors(batch)
    settings = describe(optimizer, module)
    _check_numbers(clip, threads)
    check_precision(precision, module)
    plan = _given_plan(plan, cluster, memory, ranks)
    options = {"loss": loss, "bake": bake, "infer": infer}
    model = capture(module, batch, **options)
    settings = trained_only(settings, model.trained)

    def planned(model):
        where = cluster or (f"{ranks}xcpu" if ranks else None) or plan.cluster()
        found = find_plan(model, where, memory or (plan and plan.memory()), optimizer=_planned_name(settings),
                          clip=None if clip == math.inf else clip, precision=precision, calibration=calibration, strict=strict)
        return _completed(found, settings, clip, precision)

    if plan is None:
        first = planned(model)
    else:
        first = _completed(plan, settings, clip, precision)
        _tell_differences(plan, settings, clip)
    _check_devices(first.data["cluster"])
    return Step(module, model, first, Planner(options, planned), optimizer, batch, threads)


def _check_alone():
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise InputError("parallelize", f"WORLD_SIZE is {os.environ['WORLD_SIZE']}, and every process would train all by itself",
                         "ranks are threads of one process: start the script with python, not with torchrun")


def _check_numbers(clip, threads):
    if clip is not None and not (isinstance(clip, (int, float)) and not isinstance(clip, bool) and clip > 0):
        raise InputError("parallelize", f"clip={clip!r} is no number above 0", "leave it out to clip nothing")
    if not isinstance(threads, int) or threads < 0:
        raise InputError("parallelize", f"threads={threads!r} is no whole number from 0", "0 shares torch's threads")


def _given_plan(plan, cluster, memory, ranks):
    if plan is None:
        if cluster is None and not ranks:
            raise InputError("parallelize", "neither plan, cluster nor ranks is given",
                             'say where to run: cluster="4xcpu"')
        if cluster is not None and ranks:
            raise InputError("parallelize", f"cluster={cluster!r} and ranks={ranks} are both given", "give one of them")
        return None
    for name, value in (("cluster", cluster), ("memory", memory), ("ranks", ranks)):
        if value is not None:
            raise InputError("parallelize", f"plan= and {name}= are both given", f"the plan decides; leave {name} out")
    if isinstance(plan, (str, Path)):
        return Plan.load(plan)
    if not isinstance(plan, Plan):
        raise InputError("parallelize", f"plan is a {type(plan).__name__}",
                         "give what partita.plan or partita.recipe returned, or the path of its file")
    return plan


def _planned_name(settings):
    """The planner counts states: adam has those of adamw, sgd one where any group has momentum."""
    if settings["name"] == "sgd" and any(group.get("momentum") for group in [settings, *settings.get("groups", [])]):
        return "momentum"
    return "adamw" if settings["name"] == "adam" else settings["name"]


def _completed(plan: Plan, settings, clip, precision) -> Plan:
    """The plan with what the arguments say; they count before what it says itself."""
    clip = clip or plan.data["optimizer"].get("clip")
    clips = clip is not None and clip < math.inf  # infinity clips nothing, as in torch
    data = {**plan.data, "optimizer": {**settings, **({"clip": float(clip)} if clips else {})}}
    if precision:
        data["precision"] = PRECISIONS[precision][1]
    check_loss_scale(data.get("precision", {}))
    return plan.with_data(data)


def _tell_differences(plan: Plan, settings, clip):
    made_for = plan.data["optimizer"]
    if made_for["name"] not in (_planned_name(settings), settings["name"]):
        warnings.warn(f"partita: the plan was made for {made_for['name']}, the optimizer is {settings['name']}; the optimizer "
                      "counts, and what the plan says of memory does not hold", stacklevel=3)
    if made_for.get("clip") and clip is None:
        warnings.warn(f"partita: gradients are clipped to {made_for['clip']:g}, as the plan says; clip= would count before it",
                      stacklevel=3)


def _check_devices(cluster):
    if cluster and "cpu" not in cluster:
        raise InputError("parallelize", f"the plan is for {cluster}, and ranks run as threads of this CPU",
                         'plan for that cluster with partita.plan or `partita plan`; to train here give cluster="4xcpu"')
