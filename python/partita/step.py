"""One training step of a module on many ranks."""

import contextlib
import threading
import warnings
import weakref

import torch

from .batches import batch_of, check_form, check_tensors, form_of, tensors_of, tokens_of
from .errors import InputError, RunError
from .exclusive import exclusive
from .gradients import check_inputs
from .guard import Taken, owner_of
from .metrics import Metrics
from .model import Model
from .momentum import Momentum, check_switched_on
from .optimizers import StepGuard, describe, empty_states, read_states, trained_only, write_states
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
        self._module, self._optimizer, self._lock = module, optimizer, threading.Lock()
        self._loaded = False  # into the optimizer, while the ranks have its states
        self._shapes = Shapes(module, planner, threads)
        self._form = form_of(batch)
        self._frozen = _Versions(module, [*model.trained, *model.updated_buffers])
        named = dict(module.named_parameters())
        self._named = {name: named[name] for name in model.trained}
        self._had_momentum = any(group.get("momentum") for group in optimizer.param_groups)
        self._groups = plan.data["optimizer"].get("groups", [])
        states = read_states(optimizer, optimizer.state, self._named)
        self._momentum = Momentum(optimizer, self._named)
        seed = torch.initial_seed() % (1 << 31)
        self._session = self._shapes.first(self._key(batch), model, plan, model.weights(module, seed))
        if states:
            self._session.take_over({"tensors": {}, **self._counted(states)})
            self._momentum.check(self._session.updates())
        self._taken = Taken(module, model.trained, [n for n in model.updated_buffers if n != STATE], self)
        self._take()
        # Weak, so that an optimizer does not keep the ranks of a step that nobody has any more.
        fill = weakref.WeakMethod(self._fill_states)
        optimizer.register_state_dict_pre_hook(lambda *_: fill() and fill()())
        optimizer.register_step_pre_hook(StepGuard(self._tell_that_it_steps))
        reload = weakref.WeakMethod(self._note_load)
        optimizer.register_load_state_dict_post_hook(lambda *_: reload() and reload()())

    @exclusive
    def __call__(self, *args, **kwargs) -> float:
        """One step on the global batch, as step(batch), step(x, y) or step(**batch); returns the loss.

        A batch of another shape is captured and planned once more, on the same parameters. To accumulate gradients,
        give their batches as one: micro-batches are part of the plan.
        """
        batch = self._checked(args, kwargs)
        check_inputs(tensors_of(batch))
        self._take_again()
        self._session = self._shapes.switch(self._session, self._key(batch), batch, self._given)
        named = self._shapes.model.named(batch)
        self._shapes.check(named)
        self._session.set_optimizer(self._settings())
        self._momentum.check(self._session.updates())
        self._shapes.forget_evaluation()
        report = self._session.report_step(named)
        if not report["skipped"]:
            self._momentum.note_update()
        self._optimizer._opt_called = True  # what torch's schedulers look at before they warn
        self.metrics = self._measured(report, batch)
        return report["loss"]

    @exclusive
    def evaluate(self, *args, **kwargs) -> float:
        """The loss of the module in its eval mode on a batch: forward alone, on the ranks. Nothing changes."""
        batch = self._checked(args, kwargs)
        self._take_again()
        return self._shapes.evaluate(self._session, (form_of(batch), _autocast()), batch, self._given)

    @exclusive
    def module(self) -> torch.nn.Module:
        """The module with its trained parameters and buffers; the optimizer has its states. The next step takes both over
        again."""
        if not self._taken.given:
            self._load_states()
            lasting = self._lasting()
            self._taken.give(lasting["tensors"])
            self._optimizer.state.update(self._written(lasting))
        return self._module

    @exclusive
    def state_dict(self) -> dict:
        """{"model": as module.state_dict(), "optimizer": as optimizer.state_dict(), "partita": step, random state ...}.

        Plain PyTorch loads the first two. A step that loads all of it goes on bit for bit.
        """
        self._take_again()
        lasting = self._lasting()
        with self._given(lasting):
            model = self._module.state_dict()
            self._optimizer.state.update(self._written(lasting, masters=False))
            optimizer = self._optimizer.state_dict()
            self._forget_states()
        own = {"version": VERSION, "step": lasting["steps"], "updates": lasting["updates"],
               "loss_scale": lasting["loss_scale"], "good_steps": lasting["good_steps"],
               "master": dict(lasting["states"][-1])}
        if STATE in lasting["tensors"]:
            own["random"] = int(lasting["tensors"][STATE])
        return {"model": model, "optimizer": optimizer, "partita": own}

    @exclusive
    def load_state_dict(self, state: dict):
        """Takes over what `state_dict` gave, or what plain PyTorch saved as {"model": ..., "optimizer": ...}.

        Where it does not fit, nothing has changed.
        """
        own = _checked_state(state)
        self._take_again()
        lasting = self._lasting()
        given = self._read_states(state, own, len(lasting["states"]) - 1)
        with self._given(lasting):
            _check_names(state["model"], self._module.state_dict())
            self._module.load_state_dict(state["model"])
            given["tensors"] = {name: value.clone() for name, value in self._taken.values().items()}
        if "random" in own:  # where this shape draws nothing, for one that does
            here = given["tensors"] if STATE in self._shapes.model.names("buffer") else self._shapes.spare
            here[STATE] = torch.tensor(own["random"])
        self._session.take_over(given)
        self._frozen.push(self._session)
        self._shapes.forget_evaluation()
        if "optimizer" in state:
            self._optimizer.load_state_dict(state["optimizer"])
            self._loaded = False
            self._forget_states()

    def _read_states(self, state, own, kinds: int) -> dict:
        """What of a saved state the ranks take over beside tensors; `kinds`: how many states a parameter has."""
        given = {}
        if "optimizer" in state:
            saved = _by_parameter(self._optimizer, state["optimizer"])
            given = self._counted(read_states(self._optimizer, saved, self._named) or self._empty())
        if own:
            given |= {"steps": own["step"], "updates": own["updates"], "loss_scale": own["loss_scale"],
                      "good_steps": own["good_steps"]}
            if own["master"]:
                given["states"] = [*given.get("states", [])[:kinds], *[{}] * kinds][:kinds] + [own["master"]]
        return given

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
        """What a captured step depends on: the form of the batch, which parts of the module are in training mode, and the
        autocast around the call."""
        return form_of(batch), tuple(part.training for part in self._module.modules()), _autocast()

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
        if owner_of(self._module) is not None:
            raise InputError(type(self._module).__name__, "its parameters are with the ranks of another step",
                             "call module() of that step first")
        states = read_states(self._optimizer, self._optimizer.state, self._named) or self._empty()
        self._session.take_over({"tensors": self._taken.values(), **self._counted(states)})
        self._frozen.push(self._session, every=True)
        self._shapes.forget_evaluation()
        self._loaded = False
        self._take()

    def _empty(self) -> dict:
        return empty_states(self._optimizer, self._named) if self._session.updates() else {}

    def _counted(self, states) -> dict:
        """SGD's states do not say how many updates they have seen; it matters only whether there was one."""
        self._momentum.take_over(states)
        return states if "updates" in states or not states else {**states, "updates": max(1, self._session.updates())}

    def _load_states(self):
        """What somebody loaded into the optimizer while the ranks have its states."""
        states = read_states(self._optimizer, self._optimizer.state, self._named)
        if self._loaded and not states:
            states = self._empty()
        if states:
            self._session.take_over({"tensors": {}, **self._counted(states)})
        self._loaded = False
        self._forget_states()

    def _written(self, lasting, masters: bool = True) -> dict:
        return write_states(self._optimizer, lasting, self._named, self._momentum.names, masters)

    def _note_load(self):
        self._loaded = True

    def _settings(self) -> dict:
        check_switched_on(self._optimizer, self._had_momentum)
        settings = trained_only(describe(self._optimizer, self._module), self._shapes.model.trained)
        now = settings.get("groups", [])
        if [group["params"] for group in now] != [group["params"] for group in self._groups]:
            raise InputError(type(self._optimizer).__name__, "its groups hold other parameters than before",
                             "make a new step with parallelize")
        return settings

    def _lasting(self) -> dict:
        lasting = self._session.lasting()
        return {**lasting, "tensors": {**self._shapes.spare, **lasting["tensors"]}}

    @contextlib.contextmanager
    def _given(self, lasting=None):
        """The module holds its parameters for a moment; what happens to them there is lost unless it is read there."""
        with self._taken.lent((lasting or self._lasting())["tensors"]):
            yield

    def _measured(self, report, batch) -> Metrics:
        rates = [float(group["lr"]) for group in self._optimizer.param_groups]
        steps = self._session.steps()
        return Metrics(loss=report["loss"], lr=rates[0], learning_rates=rates, seconds=report["seconds"],
                       tokens_per_second=tokens_of(batch) / report["seconds"], loss_scale=report["loss_scale"],
                       skipped=report["skipped"], peak_bytes=max(self.peak_bytes()), step=steps,
                       _norm=self._norm_of(self._session, steps))

    def _norm_of(self, session, steps):
        mine, session = weakref.ref(self), weakref.ref(session)

        def norm():
            step, its = mine(), session()
            try:
                return its.gradient_norm() if step and its is step._session and its.steps() == steps else None
            except RunError:  # the gradients are gone: something was taken over since
                return None

        return norm

    def _fill_states(self):
        if not self._taken.given:
            self._load_states()
            self._optimizer.state.update(self._written(self._session.lasting()))

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

    def push(self, session, every: bool = False) -> bool:
        """Gives the ranks those that have changed since the last call, or all. Were there any?

        An edit through `.data` leaves no trace, so all are given where the module had its parameters itself.
        """
        now, tensors = self._now(), self._tensors()
        edited = {name: tensors[name].detach() for name in now if name in self.seen and (every or now[name] != self.seen[name])}
        if edited:
            session.take_over({"tensors": edited})
        self.seen = now
        return bool(edited)


def _checked_state(state) -> dict:
    if not isinstance(state, dict) or "model" not in state:
        raise InputError("state_dict", f"it is a {type(state).__name__} without \"model\"",
                         'give what step.state_dict() returned, or {"model": module.state_dict()}')
    own = state.get("partita", {})
    if not isinstance(own, dict):
        raise InputError("state_dict", f'its "partita" is a {type(own).__name__}', "give what step.state_dict() returned")
    if own and own.get("version") != VERSION:
        raise InputError("state_dict", f"its version is {own.get('version')}, this is {VERSION}",
                         'load "model" and "optimizer" of it with plain PyTorch')
    return own


def _autocast():
    return torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")


def _check_names(given, own):
    """A state of this module: the same names with the same shapes."""
    if not hasattr(given, "keys"):
        raise InputError("state_dict", f'its "model" is a {type(given).__name__}', "give module.state_dict()")
    for name in [*own, *given]:
        if name not in given or name not in own:
            raise InputError("state_dict", f'"model" has {"no" if name in own else "a strange"} {name}',
                             "give the state of this module")
        if isinstance(own[name], torch.Tensor) and getattr(given[name], "shape", None) != own[name].shape:
            raise InputError("state_dict", f"{name} is {list(getattr(given[name], 'shape', []))}, the module's "
                             f"{list(own[name].shape)}", "give the state of this module")


def _by_parameter(optimizer, saved) -> dict:
    """A saved state by parameter object: torch numbers parameters in the order of the groups."""
    sizes = [len(group["params"]) for group in optimizer.param_groups]
    try:
        alike = [len(group["params"]) for group in saved["param_groups"]] == sizes and hasattr(saved["state"], "items")
    except (KeyError, TypeError):
        alike = False
    if not alike:
        raise InputError("state_dict", f'its "optimizer" is no state of {type(optimizer).__name__} with groups of {sizes}',
                         "give optimizer.state_dict() of an optimizer with the same groups")
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    numbers = [number for group in saved["param_groups"] for number in group["params"]]
    by_number = dict(zip(numbers, parameters))
    return {by_number[number]: entry for number, entry in saved["state"].items()}
