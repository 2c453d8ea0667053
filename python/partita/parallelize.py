"""A module and an optimizer -> a training step on many ranks."""

import warnings

import torch

from .capture import capture
from .errors import InputError
from .model import Model
from .native import library
from .optimizers import describe, settings_of
from .plan import Plan, plan as find_plan
from .precision import PRECISIONS, check_precision
from .random import STATE


def parallelize(module: torch.nn.Module, batch, optimizer, plan: Plan | None = None, cluster: str | None = None,
                memory: str | None = None, ranks: int | None = None, loss=None, threads: int = 0,
                clip: float | None = None, precision: str | None = None, calibration: str | None = None) -> "Step":
    """Captures `module` on `batch`, plans it for `cluster` unless a plan is given, and starts its ranks as threads.

    ranks: short for cluster="<ranks>xcpu".

    The step takes the trainable parameters over: until `step.module()` gives them back the module can neither run nor
    be saved. A learning rate that changes in `optimizer` (a scheduler) counts from the next step on.
    threads: of each rank; 0 shares the threads torch has among the ranks.
    clip: largest norm of all gradients together, as torch.nn.utils.clip_grad_norm_ before each optimizer step.
    precision: "bf16" or "fp16" for a module in that dtype: the optimizer updates float32 copies of its parameters, and
    fp16 gradients are scaled. For a float32 module use torch.autocast in its forward.
    calibration: a file of `partita calibrate`; plans are then ranked by what this machine takes.
    """
    settings = describe(optimizer, module.named_parameters())
    if clip is not None and not clip > 0:
        raise InputError("parallelize", f"clip={clip} is not above 0", "leave it out to clip nothing")
    check_precision(precision, module)
    model = capture(module, batch, loss)
    if plan is None:
        cluster = cluster or (f"{ranks}xcpu" if ranks else None)
        if cluster is None:
            raise InputError("parallelize", "neither plan, cluster nor ranks is given",
                             'say where to run: cluster="4xcpu"')
        plan = find_plan(model, cluster, memory, optimizer=settings["name"], clip=clip, precision=precision,
                         calibration=calibration)
    clip = clip or plan.data["optimizer"].get("clip")
    if clip:
        settings = {**settings, "clip": float(clip)}
    data = {**plan.data, "optimizer": settings}
    if precision:
        data["precision"] = PRECISIONS[precision][1]
    if plan.data["cluster"] and "cpu" not in plan.data["cluster"]:
        warnings.warn(f"partita: the plan is for {plan.data['cluster']}; its ranks run as threads of this CPU", stacklevel=2)
    planned = Plan(data, plan.step_seconds, plan.peak_bytes)
    return Step(module, model, planned, threads, optimizer)


class Step:
    """One training step of a module on many ranks: call it with the GLOBAL batch."""

    def __init__(self, module, model: Model, plan: Plan, threads: int = 0, optimizer=None):
        self.model, self.plan = model, plan
        self._optimizer, self._settings = optimizer, plan.data["optimizer"]
        self._module = module
        self._session = library().Session(model.to_json(), model.weights(module), plan.to_json(), threads=threads)
        # Kept until the first step makes new ones; a module whose weights would silently stay old is worse than one
        # that cannot be called.
        self._before = {name: p.data for name, p in module.named_parameters() if p.requires_grad}
        for name in self._before:
            parameter = module.get_parameter(name)
            parameter.data = parameter.data.new_empty(0)
        self._guards = [module.register_forward_pre_hook(_taken), module.register_state_dict_pre_hook(_taken)]

    def __call__(self, batch) -> float:
        """One step on the global batch; returns the loss."""
        self._follow_optimizer()
        loss = self._session.step(self.model.named(batch))
        self._before = {}
        return loss

    def module(self) -> torch.nn.Module:
        """The module with its trained parameters and buffers."""
        for name, value in (self._before or self._session.parameters()).items():
            self._module.get_parameter(name).data = value
        for name, value in ({} if self._before else self._session.buffers()).items():
            if name != STATE:
                self._module.get_buffer(name).copy_(value)
        for guard in self._guards:
            guard.remove()
        return self._module

    def _follow_optimizer(self):
        if self._optimizer is None:
            return
        now = settings_of(self._optimizer)
        changed = [key for key in now if now[key] != self._settings[key]]
        if changed == ["lr"]:
            self._session.set_learning_rate(now["lr"])
            self._settings = now
        elif changed:
            raise InputError(type(self._optimizer).__name__, f"{', '.join(changed)} changed after the step was made",
                             "only lr may; make a new step with parallelize")

    def peak_bytes(self) -> list:
        """The most bytes each rank has held at once."""
        return self._session.peak_bytes()


def _taken(module, *_):
    raise InputError(type(module).__name__, "its parameters are with the ranks of a step",
                     "call step.module(), which gives them back")
