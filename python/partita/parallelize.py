"""A module and an optimizer -> a training step on many ranks."""

import torch

from .capture import capture
from .errors import InputError
from .model import Model
from .native import library
from .optimizers import describe
from .plan import Plan, plan as find_plan
from .random import STATE


def parallelize(module: torch.nn.Module, batch, optimizer, plan: Plan | None = None, cluster: str | None = None,
                memory: str | None = None, ranks: int | None = None, loss=None, threads: int = 0) -> "Step":
    """Captures `module` on `batch`, plans it for `cluster` unless a plan is given, and starts its ranks as threads.

    ranks: short for cluster="<ranks>xcpu".

    The step takes the trainable parameters over: until `step.module()` gives them back the module's own are empty.
    threads: of each rank; 0 shares the threads torch has among the ranks.
    """
    settings = describe(optimizer, module.named_parameters())
    model = capture(module, batch, loss)
    if plan is None:
        cluster = cluster or (f"{ranks}xcpu" if ranks else None)
        if cluster is None:
            raise InputError("parallelize", "neither plan, cluster nor ranks is given",
                             'say where to run: cluster="4xcpu"')
        plan = find_plan(model, cluster, memory, optimizer=settings["name"])
    return Step(module, model, Plan({**plan.data, "optimizer": settings}, plan.step_seconds, plan.peak_bytes), threads)


class Step:
    """One training step of a module on many ranks: call it with the GLOBAL batch."""

    def __init__(self, module, model: Model, plan: Plan, threads: int = 0):
        self.model, self.plan = model, plan
        self._module = module
        self._session = library().Session(model.to_json(), model.weights(module), plan.to_json(), threads=threads)
        # Kept until the first step makes new ones; a module whose weights would silently stay old is worse than one
        # that cannot be called.
        self._before = {name: p.data for name, p in module.named_parameters() if p.requires_grad}
        for name in self._before:
            parameter = module.get_parameter(name)
            parameter.data = parameter.data.new_empty(0)

    def __call__(self, batch) -> float:
        """One step on the global batch; returns the loss."""
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
        return self._module

    def peak_bytes(self) -> list:
        """The most bytes each rank has held at once."""
        return self._session.peak_bytes()
