"""One training step of a module on many ranks."""

import contextlib
import warnings
import weakref

import torch

from .batches import batch_of, check_form, check_tensors, form_of, tokens_of
from .errors import InputError, RunError
from .guard import Taken, owner_of
from .metrics import Metrics
from .model import Model
from .optimizers import read_states, settings_of, trained_only, write_states
from .plan import Plan
from .random import STATE
from .shapes import Shapes

VERSION = 1


class Step:
    """One training step of a module on many ranks: call it with the GLOBAL batch.

    It has the parameters and the optimizer's states. `module()` gives them back, and the next call takes them over
    again, with what was changed in between. A step that fails changes nothing.
    """

    def __init__(self, module, model: Model, plan: Plan, planner, optimizer, batch, threads: int = 0):
        self.model, self.plan, self.metrics = model, plan, None
        self._module, self._optimizer = module, optimizer
        self._shapes = Shapes(module, planner, threads)
        self._form = form_of(batch)
        self._frozen = _Versions(module, [*model.trained, *model.updated_buffers])
        named = dict(module.named_parameters())
        self._named = {name: named[name] for name in model.trained}
        states = read_states(optimizer, optimizer.state, self._named)
        self._session = self._shapes.first(self._key(batch), model, plan, model.weights(module))
        if states:
            self._session.take_over({"tensors": {}, **states})
        self._taken = Taken(module, model.trained, [n for n in model.updated_buffers if n != STATE], self)
        self._take()
        # Weak, so that an optimizer does not keep the ranks of a step that nobody has any more.
        fill, tell = weakref.WeakMethod(self._fill_states), weakref.WeakMethod(self._tell_that_it_steps)
        optimizer.register_state_dict_pre_hook(lambda *_: fill() and fill()())
        optimizer.register_step_pre_hook(lambda *_: tell() and tell()())

    def __call__(self, *args, **kwargs) -> float:
        """One step on the global batch, as step(batch), step(x, y) or step(**batch); returns the loss.

        A batch of another shape is captured and planned once more, on the same parameters. To accumulate gradients,
        give their batches as one: micro-batches are part of the plan.
        """
        batch = self._checked(args, kwargs)
        self._take_again()
        self._session = self._shapes.switch(self._session, self._key(batch), batch, self._given)
        named = self._shapes.model.named(batch)
        self._shapes.check(named)
        self._session.set_optimizer(trained_only(settings_of(self._optimizer, self._module), self._shapes.model.trained))
        self._shapes.forget_evaluation()
        report = self._session.report_step(named)
        self._optimizer._opt_called = True  # what torch's schedulers look at before they warn
        self.metrics = self._measured(report, batch)
        return report["loss"]

    def evaluate(self, *args, **kwargs) -> float:
        """The loss of the module in its eval mode on a batch: forward alone, on the ranks. Nothing changes."""
        batch = self._checked(args, kwargs)
        self._take_again()
        return self._shapes.evaluate(self._session, form_of(batch), batch, self._given)

    def module(self) -> torch.nn.Module:
        """The module with its trained parameters and buffers; the optimizer has its states. The next step takes both over
        again."""
        if not self._taken.given:
            lasting = self._session.lasting()
            self._taken.give(lasting["tensors"])
            self._optimizer.state.update(write_states(self._optimizer, lasting, self._named))
        return self._module

    def state_dict(self) -> dict:
        """{"model": as module.state_dict(), "optimizer": as optimizer.state_dict(), "partita": step, random state ...}.

        Plain PyTorch loads the first two. A step that loads all of it goes on bit for bit.
        """
        self._take_again()
        lasting = self._session.lasting()
        with self._given(lasting):
            model = self._module.state_dict()
            self._optimizer.state.update(write_states(self._optimizer, lasting, self._named, masters=False))
            optimizer = self._optimizer.state_dict()
            self._forget_states()
        own = {"version": VERSION, "step": lasting["steps"], "updates": lasting["updates"],
               "loss_scale": lasting["loss_scale"], "good_steps": lasting["good_steps"],
               "master": dict(lasting["states"][-1])}
        if STATE in lasting["tensors"]:
            own["random"] = int(lasting["tensors"][STATE])
        return {"model": model, "optimizer": optimizer, "partita": own}

    def load_state_dict(self, state: dict):
        """Takes over what `state_dict` gave, or what plain PyTorch saved as {"model": ..., "optimizer": ...}."""
        own = _checked_state(state)
        self._take_again()
        with self._given(self._session.lasting()):
            self._module.load_state_dict(state["model"])
            tensors = self._taken.values()
            given = {"tensors": {name: value.clone() for name, value in tensors.items()}}
        if "optimizer" in state:
            self._optimizer.load_state_dict(state["optimizer"])
            self._forget_states()
            given |= read_states(self._optimizer, _by_parameter(self._optimizer, state["optimizer"]), self._named)
        if own:
            given |= {"steps": own["step"], "updates": own["updates"], "loss_scale": own["loss_scale"],
                      "good_steps": own["good_steps"]}
            if own["master"]:
                given["states"] = [*given.get("states", []), own["master"]]
            if "random" in own and STATE in self._shapes.model.names("buffer"):
                given["tensors"][STATE] = torch.tensor(own["random"])
        self._session.take_over(given)
        self._frozen.push(self._session)
        self._shapes.forget_evaluation()

    def peak_bytes(self) -> list:
        """The most bytes each rank has held at once."""
        return self._session.peak_bytes()

    def __repr__(self):
        last = f", step {self.metrics.step}, loss {self.metrics.loss:.4g}" if self.metrics else ""
        return f"<partita.Step of {type(self._module).__name__}: {self.plan.summary()}{last}>"

    def __deepcopy__(self, _memo):
        raise InputError("Step", "ranks cannot be copied", "copy step.state_dict(), or step.module()")

    def __reduce__(self):
        raise InputError("Step", "ranks cannot be pickled", "save step.state_dict()")

    def _key(self, batch) -> tuple:
        """What a captured step depends on: the form of the batch, and which parts of the module are in training mode."""
        return form_of(batch), tuple(part.training for part in self._module.modules())

    def _checked(self, args, kwargs):
        batch = batch_of(args, kwargs)
        check_tensors(batch)
        check_form(self._form, form_of(batch))
        return batch

    def _take(self):
        self._taken.take()
        self._forget_states()

    def _forget_states(self):
        """The ranks have them; those of parameters that the step does not train stay."""
        for parameter in self._named.values():
            self._optimizer.state.pop(parameter, None)

    def _take_again(self):
        """The ranks have what the module and the optimizer hold now."""
        if not self._taken.given:
            self._taken.check_untouched()
            if self._frozen.push(self._session):
                self._shapes.forget_evaluation()
            self._load_states()
            return
        owner = owner_of(self._module)
        if owner is not None:
            raise InputError(type(self._module).__name__, "its parameters are with the ranks of another step",
                             "call module() of that step first")
        given = {"tensors": self._taken.values(),
                 **read_states(self._optimizer, self._optimizer.state, self._named)}
        self._session.take_over(given)
        self._frozen.push(self._session)
        self._shapes.forget_evaluation()
        self._take()

    def _load_states(self):
        """What somebody loaded into the optimizer while the ranks have its states."""
        states = read_states(self._optimizer, self._optimizer.state, self._named)
        if states:
            self._session.take_over({"tensors": {}, **states})
            self._forget_states()

    @contextlib.contextmanager
    def _given(self, lasting=None):
        """The module holds its parameters for a moment; what happens to them there is lost unless it is read there."""
        self._taken.give((lasting or self._session.lasting())["tensors"])
        try:
            yield
        finally:
            self._taken.take()

    def _measured(self, report, batch) -> Metrics:
        rates = [float(group["lr"]) for group in self._optimizer.param_groups]
        steps = self._session.steps()
        return Metrics(loss=report["loss"], lr=rates[0], learning_rates=rates, seconds=report["seconds"],
                       tokens_per_second=tokens_of(batch) / report["seconds"], loss_scale=report["loss_scale"],
                       skipped=report["skipped"], peak_bytes=max(self.peak_bytes()), step=steps,
                       _norm=self._norm_of(self._session, steps))

    def _norm_of(self, session, steps):
        def norm():
            try:
                return session.gradient_norm() if session is self._session and session.steps() == steps else None
            except RunError:  # the gradients are gone: something was taken over since
                return None

        return norm

    def _fill_states(self):
        if not self._taken.given:
            self._optimizer.state.update(write_states(self._optimizer, self._session.lasting(), self._named))

    def _tell_that_it_steps(self):
        if not self._taken.given and not getattr(self, "_told", False):
            self._told = True
            warnings.warn("partita: optimizer.step() does nothing here: step(batch) computes gradients and updates the "
                          "parameters; leave it out, as zero_grad() and backward()", stacklevel=3)


class _Versions:
    """Parameters and buffers that no step changes: they stay in the module, and edits of them are taken over."""

    def __init__(self, module, changed):
        self.module, self.changed = module, set(changed)
        self.seen = self._now()

    def _tensors(self):
        named = {**dict(self.module.named_parameters()), **dict(self.module.named_buffers())}
        return {name: value for name, value in named.items() if name not in self.changed}

    def _now(self):
        return {name: (value._version, value.data_ptr()) for name, value in self._tensors().items()}

    def push(self, session) -> bool:
        """Gives the ranks those that have changed since the last call. Were there any?"""
        now, tensors = self._now(), self._tensors()
        edited = {name: tensors[name].detach() for name in now if name in self.seen and now[name] != self.seen[name]}
        if edited:
            session.take_over({"tensors": edited})
        self.seen = now
        return bool(edited)


def _checked_state(state) -> dict:
    if not isinstance(state, dict) or "model" not in state:
        raise InputError("state_dict", f"it is a {type(state).__name__} without \"model\"",
                         'give what step.state_dict() returned, or {"model": module.state_dict()}')
    own = state.get("partita", {})
    if own and own.get("version") != VERSION:
        raise InputError("state_dict", f"its version is {own.get('version')}, this is {VERSION}",
                         'load "model" and "optimizer" of it with plain PyTorch')
    return own


def _by_parameter(optimizer, saved) -> dict:
    """A saved state by parameter object: torch numbers parameters in the order of the groups."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    numbers = [number for group in saved["param_groups"] for number in group["params"]]
    by_number = dict(zip(numbers, parameters))
    return {by_number[number]: entry for number, entry in saved["state"].items()}
