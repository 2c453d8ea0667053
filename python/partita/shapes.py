"""The sessions of one Step: one for every form of batch it has seen. One of them has the parameters."""

import sys
from collections import OrderedDict
from dataclasses import dataclass

from .capture import capture, capture_evaluation
from .capture.memory import check_batch_apart
from .model import Model
from .errors import InputError
from .native import library
from .plan import Plan
from .random import STATE

MOST = 4  # of each kind, beside the first; the one not used for longest goes


@dataclass
class Shape:
    """A form of batch with its model, its plan and its session."""

    model: Model
    plan: Plan
    session: object


class Planner:
    """How other forms of batch are captured and planned: as the first was."""

    def __init__(self, capture_options: dict, find):
        self.options, self.find = capture_options, find

    def plan(self, model: Model, first: Plan) -> Plan:
        """The first plan where it can run this model; else a new one for the same devices."""
        fitted = library().fit_plan(model.handle(), first.to_json())
        return Plan.parse(fitted) if fitted else self.find(model)


class Shapes:
    def __init__(self, module, planner: Planner, threads: int):
        self.module, self.planner, self.threads = module, planner, threads
        self.training, self.evaluation = OrderedDict(), OrderedDict()
        self.spare = {}       # tensors that the session with the parameters does not have, but another one needs
        self.now = self.first_form = None  # the form whose session has the parameters; of the first batch
        self.evaluated = None  # the form whose evaluation has a copy of them

    @property
    def model(self) -> Model:
        return self.training[self.now].model

    def first(self, form, model: Model, plan: Plan, weights: dict):
        self.now = self.first_form = form
        self.training[form] = Shape(model, plan, self._open(model, plan, weights))
        return self.training[form].session

    def switch(self, session, form, batch, given):
        """The session for this form, with all that `session` had. Where anything fails, `session` still has it.

        given: a context in which the module holds its parameters.
        """
        if form == self.now:
            return session
        if form not in self.training:
            self._add(form, batch, given)
        self.training.move_to_end(form)
        lasting = session.lasting()
        other = self.training[form]
        other.session.take_over({**lasting, "tensors": self._tensors(lasting, other.model)})
        session.release()
        self.spare |= {name: value for name, value in lasting["tensors"].items() if name not in other.model.held}
        self.now = form
        return other.session

    def _tensors(self, lasting, model) -> dict:
        """All that a session of `model` starts from: of the ranks, else what was kept, else the module's own."""
        known = {**model.weights(self.module), **self.spare, **lasting["tensors"]}
        return {name: known[name] for name in _names(model)}

    def _add(self, form, batch, given):
        first = self.training[self.first_form]
        with given():
            model = capture(self.module, batch, **self.planner.options)
            _check_same(first.model, model)
            plan = self._planned(model, first.plan, form)
            session = self._open(model, plan, model.weights(self.module))
            session.release()
        self.training[form] = Shape(model, plan, session)
        _drop_oldest(self.training, (self.now, form, self.first_form))

    def _planned(self, model, first, form):
        plan = self.planner.plan(model, first)
        sizes = ", ".join(f"{entry[0]} {list(entry[2])}" for entry in form[0] if len(entry) > 2)
        what = f"a batch of another shape or layout ({sizes})" if form[0] != self.now[0] else "the module is in another mode (train, eval)"
        print(f"partita: {what}: captured and planned once, {plan.summary()}", file=sys.stderr)
        return plan

    def evaluate(self, session, form, batch, given) -> float:
        if form not in self.evaluation:
            self._add_evaluation(form, batch, given)
        shape = self.evaluation[form]
        named = shape.model.named(batch)
        _check(shape.model, named)
        if self.evaluated != form:
            self.forget_evaluation()
            shape.session.take_over({"tensors": self._tensors(session.lasting(), shape.model)})
            self.evaluated = form
        return shape.session.step(named)

    def _add_evaluation(self, form, batch, given):
        first = self.training[self.first_form]
        with given():
            model = capture_evaluation(self.module, batch, **self.planner.options)
            fitted = library().fit_plan(model.handle(), first.plan.to_json())
            plan = Plan.parse(fitted) if fitted else self.planner.find(model)
            session = self._open(model, plan, model.weights(self.module))
            session.release()
        self.evaluation[form] = Shape(model, plan, session)
        _drop_oldest(self.evaluation, (form,))

    def forget_evaluation(self):
        """The copy of the parameters that evaluation has is old."""
        if self.evaluated is not None and self.evaluated in self.evaluation:
            self.evaluation[self.evaluated].session.release()
        self.evaluated = None

    def check(self, named):
        _check(self.model, named)

    def _open(self, model, plan, weights):
        return library().Session(model.handle(), weights, plan.to_json(), threads=self.threads, recoverable=True)


def _check(model, named):
    check_batch_apart(named, model.written_inputs)
    for index in model.indexes:
        index.check({name: named.get(name, named.get(f"batch.{name}")) for name in index.inputs})


def _names(model):
    return [*model.names("parameter"), *model.names("buffer")]


def _check_same(first: Model, other: Model):
    """Both train the same parameters and change the same buffers, or one step's states would mean nothing to the other."""
    for what, mine, its in (("trains", first.trained, other.trained),
                            ("changes", first.updated_buffers, other.updated_buffers)):
        differ = sorted({*mine} ^ {*its} - {STATE}) if what == "trains" else sorted({*its} - {*mine, STATE})
        if differ:
            raise InputError("batch", f"with this shape and mode the step {what} {differ[0]} differently from the first one",
                             "make a step of its own for it with parallelize, after step.module()")


def _drop_oldest(shapes, keep):
    for form in list(shapes):
        if len(shapes) <= MOST + 1:
            return
        if form not in keep:
            del shapes[form]
