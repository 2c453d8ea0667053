"""One model of the zoo: captured in float64, planned under a limit, trained beside eager PyTorch."""

import copy
import json
import math
import subprocess
import tempfile
import time
import warnings
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

import torch

import partita
from partita.native import command
from zoo import ZOO
from zoo.compare import eager
from zoo.double import double_batch, in_double, make_double

STEPS, TOLERANCE = 3, 1e-9
FLOOR = 1e-4  # a tensor counts for at least this share of the largest of its kind, as in `partita verify`
RATE, MOMENTUM = 1e-3, 0.9  # a deep net with BatchNorm multiplies differences by each update


@dataclass
class Row:
    """What came of one model on `ranks` under `percent` of one device's peak; errors are relative, the worst of all steps."""

    name: str
    ranks: int
    percent: int
    outcome: str = ""  # equal, refused or failed
    reason: str = ""   # why refused or failed
    least: bool = False  # nothing fits: planned for the least memory named
    limit: int = 0
    peak: int = 0      # measured, of the worst rank
    summary: str = ""
    seconds: float = 0.0
    errors: dict = field(default_factory=dict)  # of losses, gradients, parameters, buffers


class Refused(Exception):
    """The planner says what it cannot do with this model."""


class Failed(Exception):
    """A promise is broken."""


@cache
def strict() -> list:
    """A candidate that fails a check of our own ends the planning."""
    said = subprocess.run([command(), "plan", "--help"], capture_output=True, text=True).stdout
    return ["--strict"] if "--strict" in said else []


class Subject:
    """A model of the zoo and its file."""

    def __init__(self, name: str, folder: Path):
        self.case, self.file = ZOO[name], folder / "step.model.json"
        with in_double(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is baked in
            self.module, self.batch = make_double(self.case)
            partita.capture(self.module, self.batch, self.case.loss, bake=self.case.bake).save(self.file)
        self.words, self.plan = [], None  # of the last command, and what it found

    @cached_property
    def peak(self) -> int:
        """On one device, without a limit."""
        return max(self.ask(1, None)["plans"][0]["peak_bytes"])

    def batches(self) -> list:
        """A new one for each step; the same where the captured step keeps what its batch did."""
        if self.case.bake:
            return [self.batch] * STEPS
        drawn = [self.batch]
        for step in range(1, STEPS):
            torch.manual_seed(step)
            with in_double():
                drawn.append(double_batch(self.case.batch()))
        return drawn

    def ask(self, ranks: int, limit: int | None) -> dict:
        """The answer of `partita plan`; of one that finds nothing, too."""
        self.words = ["plan", str(self.file), "--cluster", f"{ranks}xcpu", "--optimizer", "momentum", "--json", *strict()]
        if limit is not None:
            self.words += ["--memory", f"{limit}B"]
        done = subprocess.run([command(), *self.words], capture_output=True, text=True)
        if done.returncode == 2:
            raise Refused(done.stderr.strip().removeprefix("error: "))
        if done.returncode not in (0, 1):
            raise Failed(f"exit {done.returncode}: {done.stderr.strip()}")
        return json.loads(done.stdout)


def run(subject: Subject, row: Row) -> Row:
    """Fills in the row; whatever goes wrong is its outcome."""
    begin = time.perf_counter()
    try:
        _plan(subject, row)
        with in_double():
            _train(subject, row)
        row.outcome = "equal"
    except Refused as refusal:
        row.outcome, row.reason = "refused", str(refusal)
    except Exception as error:  # the table says so, and goes on with the next
        row.outcome, row.reason = "failed", str(error) if isinstance(error, Failed) else f"{type(error).__name__}: {error}"
    row.seconds = time.perf_counter() - begin
    return row


def _plan(subject, row):
    subject.plan = None
    row.limit = subject.peak * row.percent // 100
    answer = subject.ask(row.ranks, row.limit)
    if not answer["plans"]:
        row.least, row.limit = True, answer["least_memory_bytes"]
        if row.limit == 0:
            raise Failed("nothing fits, and no least memory is named")
        answer = subject.ask(row.ranks, row.limit)
    if not answer["plans"]:
        raise Failed(f"nothing fits {row.limit} bytes, named as the least that would do")
    if answer.get("warnings"):
        raise Failed("warnings: " + "; ".join(map(str, answer["warnings"])))
    best = answer["plans"][0]
    subject.plan = partita.Plan(best["plan"], best["step_seconds"], best["peak_bytes"])
    row.summary = best["summary"]


def _train(subject, row):
    module, ours = (copy.deepcopy(subject.module) for _ in range(2))
    theirs, optimizer = _momentum(module), _momentum(ours)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        step = partita.parallelize(ours, subject.batch, optimizer, plan=subject.plan, loss=subject.case.loss,
                                   bake=subject.case.bake)
    for batch in subject.batches():
        theirs.zero_grad()
        loss, gradients = eager(subject.case, module, batch)
        got = step(batch)
        _take(row, "loss", {"": torch.tensor(got, dtype=loss.dtype)}, {"": loss})
        _take(row, "gradient", step._session.gradients(), gradients)
        theirs.step()
    row.peak = max(step.peak_bytes())
    trained = step.module()
    _take(row, "parameter", dict(trained.named_parameters()), dict(module.named_parameters()))
    _take(row, "buffer", dict(trained.named_buffers()), dict(module.named_buffers()))
    _judge(row)


def _momentum(module):
    return torch.optim.SGD([p for p in module.parameters() if p.requires_grad], RATE, MOMENTUM)


def _take(row, kind, got, want):
    """Keeps the worst error of a kind, and the tensor that has it."""
    if got.keys() != want.keys():
        raise Failed(f"only one side has the {kind} of {', '.join(sorted(got.keys() ^ want.keys()))}")
    worst = max(relative_errors(got, want).items(), key=lambda item: item[1], default=("", 0.0))
    row.errors[kind] = max(row.errors.get(kind, ("", 0.0)), worst, key=lambda item: item[1])


def relative_errors(got: dict, want: dict) -> dict:
    """The largest difference of each tensor, relative to its largest value."""
    got, want = ({name: _plain(value) for name, value in side.items()} for side in (got, want))
    sizes = {name: _largest(value) for name, value in want.items()}
    floor = FLOOR * max(sizes.values(), default=0)
    return {name: _largest_difference(got[name], want[name]) / (max(sizes[name], floor) or 1.0) for name in want}


def _plain(value):
    return value.detach().to(torch.complex128 if value.is_complex() else torch.float64)


def _largest(value):
    return torch.nan_to_num(value).abs().max().item() if value.numel() else 0.0


def _largest_difference(a, b):
    if a.shape != b.shape or not torch.equal(torch.isnan(a), torch.isnan(b)):
        return math.inf
    return _largest(torch.where(a == b, 0, a - b))


def _judge(row):
    for kind, (name, error) in row.errors.items():
        if not error <= TOLERANCE:
            raise Failed(f"{kind} {name} is {error:.1e} off")
    if row.peak > row.limit:
        raise Failed(f"a rank held {row.peak} bytes, the limit is {row.limit}")


def keep_fault(folder: Path, subject: Subject, row: Row):
    """Leaves what it takes to see the failure again: the model, the plan, the command and the message."""
    place = folder / "".join(c if c.isalnum() else "_" for c in row.name) / f"{row.ranks}_ranks_{row.percent}_percent"
    place.mkdir(parents=True, exist_ok=True)
    for file in subject.file.parent.glob("step.*"):
        (place / file.name).write_bytes(file.read_bytes())
    if subject.plan is not None:
        subject.plan.save(place / "plan.json")
    words = " ".join(word for word in subject.words).replace(str(subject.file), subject.file.name)
    seen = f"partita verify {subject.file.name} plan.json\n" if subject.plan is not None else ""
    (place / "README").write_text(f"partita {words}\n{seen}{row.outcome}: {row.reason}\n")
    with open(folder / "LIST.txt", "a") as index:
        index.write(f"{row.name}, {row.ranks} ranks, {row.percent} %: {row.outcome}: {row.reason[:300]}  ({place})\n")


def only(name: str, ranks: int, percent: int) -> Row:
    """One row by itself."""
    with tempfile.TemporaryDirectory() as folder:
        return run(Subject(name, Path(folder)), Row(name, ranks, percent))
