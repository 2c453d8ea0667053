"""How a step runs on many devices: plans, and what the verbs of the command say of them, in this process."""

import json
import warnings
from pathlib import Path

from .ask import PLAN, ask, word_of
from .errors import InputError
from .files import write_whole
from .model import Model


class Plan:
    """One plan as its file holds it; `step_seconds` and `peak_bytes` (by rank) are what the planner expects."""

    def __init__(self, data: dict, step_seconds=None, peak_bytes=None, ranked=(), lost=(), tier=None, expected_error=None):
        self.data = data
        self.tier, self.expected_error = tier, expected_error  # how `step_seconds` is known, and how far off to expect it
        self.step_seconds, self.peak_bytes = step_seconds, peak_bytes
        self.ranked = list(ranked)  # the plans that fit, fastest first, as `partita plan --json` gives them
        self.lost = list(lost)      # those that do not fit, each with its reason

    def __repr__(self):
        seconds = f", {self.step_seconds:.3g} s a step" if self.step_seconds else ""
        return f"<partita.Plan {self.summary()}{seconds}>"

    def summary(self) -> str:
        return self.data["summary"]

    def cluster(self) -> str:
        """Where it runs; of a recipe, which names no cluster, as many ranks of this CPU."""
        devices = {d for stage in self.data["stages"] for site in [stage["devices"], *stage.get("copies", [])] for d in site}
        return self.data["cluster"] or f"{len(devices)}xcpu"

    def memory(self) -> str | None:
        """Its limit per device; None where it has none."""
        return str(self.data["memory"]) if self.data.get("memory") else None

    def with_data(self, data: dict) -> "Plan":
        return Plan(data, self.step_seconds, self.peak_bytes, self.ranked, self.lost, self.tier, self.expected_error)

    def ranking(self, lost: int | None = None) -> str:
        """The plans the planner compared, one line each: those that fit, fastest first, then those that do not.

        lost: show the `lost` that come nearest to fitting, and count the rest; None shows all.
        """
        shown = self.lost[:lost]
        rows = [("plan", "step", "peak/device", "why")]
        rows += [(p["summary"], f"{p['step_seconds'] * 1e3:.2f} ms", _mebibytes(p), p["reason"]) for p in self.ranked]
        rows += [(p["summary"], "-", _mebibytes(p), p["reason"]) for p in shown]
        width = max(36, *(len(row[0]) for row in rows))
        lines = [f"{a:<{width}} {b:>10} {c:>12}  {d}" for a, b, c, d in rows]
        if len(shown) < len(self.lost):
            lines.append(f"... and {len(self.lost) - len(shown)} more that do not fit")
        return "\n".join(lines)

    def schedule(self) -> str:
        """Which stage runs which micro-batch when, one line per stage; a backward drawn twice as long as a forward."""
        if self.data.get("order"):
            rows = "".join(f"{row}\n" for row in self.data["order"])
            return ask("lab", "schedule", "--show", texts={"order.csv": rows}, csv="order.csv")
        stages = self.data["stages"]
        sites = {tuple(devices) for stage in stages for devices in [stage["devices"], *stage.get("copies", [])]}
        chunks = len(stages) // len(sites)
        flags = {"name": self.data["schedule"], "devices": len(sites), "microbatches": self.data["microbatches"], "forward": 1,
                 "chunks": chunks if chunks > 1 else None}
        try:
            return ask("lab", "schedule", "--show", backward=2, **flags)
        except InputError:  # it runs input and weight gradients apart
            return ask("lab", "schedule", "--show", input_grad=1, weight_grad=1, **flags)

    def to_json(self) -> str:
        return json.dumps(self.data, indent=1) + "\n"

    def save(self, path) -> None:
        write_whole(path, self.to_json())

    @staticmethod
    def parse(text: str, where: str = "plan") -> "Plan":
        try:
            data = json.loads(text)
        except json.JSONDecodeError as error:
            raise InputError(where, f"it is no JSON: {error}", "give a file that `partita plan -o` or .save() wrote") from None
        if not isinstance(data, dict) or data.get("format") != "partita.plan":
            raise InputError(where, "it is no plan", "give a file that `partita plan -o` or .save() wrote")
        return Plan(data)

    @staticmethod
    def load(path) -> "Plan":
        try:
            text = Path(path).read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(str(path), f"it cannot be read ({error.__class__.__name__})",
                             "give a file that `partita plan -o` or .save() wrote") from None
        return Plan.parse(text, str(path))


def plan(model: Model | str, cluster: str, memory: str | None = None, calibration: str | None = None, strict: bool = False,
         progress=None, **options) -> Plan:
    """The best plan for `cluster` under `memory` per device; raises Infeasible when nothing fits.

    model: a Model; or, here and below, what the command takes: a preset, a config.json, a file that was captured.
    calibration: a file of `partita calibrate`; plans are then ranked by what this machine takes.
    strict: a plan that fails a check of partita's own is a RuntimeError; without it, it is left out with a warning, and
    the next best is given.
    progress: a callable of (phase, done, all, best), called in this thread: how far the phase is, all of it or 0 where
    that is not known, and the best seconds of a step so far or None. What it raises ends the search.
    options: further flags of `partita plan`, such as top=5 or allow="dp,tp".
    """
    flags = {"cluster": cluster, "memory": memory, "calibration": calibration, "strict": strict, **options}
    answer = _answer("plan", word_of(model), model=model, progress=progress, **flags)
    for line in answer["warnings"]:
        warnings.warn(f"partita: {line}", stacklevel=2)
    best = answer["plans"][0]
    return Plan(best["plan"], best["step_seconds"], best["peak_bytes"], answer["plans"], answer["lost"], answer["tier"],
                answer["expected_error"])


def recipe(name: str, model: Model | str, ranks: int, **options) -> Plan:
    """A plan by name, such as recipe("tp", model, ranks=4)."""
    return Plan(_answer("recipe", name, word_of(model), model=model, ranks=ranks, **options)["plan"])


def verify(model: Model | str, plan: Plan, **options) -> dict:
    """Runs the plan and one device for three steps on the same batches and compares them: `equal`, `max_grad_error`, ...
    Where they differ, `first_wrong_op` names the first op that makes something else. Rows that nobody vouches for are in
    `certified_assuming`.

    options: further flags of `partita verify`, such as dtype="float64" or no_inferred_rows=True; and progress, as above.
    """
    return _answer("verify", word_of(model), PLAN, model=model, plan=plan, **options)


def profile(model: Model | str, **options) -> dict:
    """What a training step computes and keeps, by module, without running it: what `partita profile --json` answers.

    options: flags of `partita profile`, such as device="A100-80GB", optimizer="adamw", at_peak=True or fit="80GiB".
    """
    return _answer("profile", word_of(model), model=model, **options)


def explain(plan: Plan, model: Model | str | None = None, **options) -> dict:
    """Why a plan is as it is, what would make it faster, and how sure that is: what `partita explain --json` answers.

    model: what the plan was made for; None where that is a preset.
    options: flags of `partita explain`, such as cluster="4xcpu"; and progress, as above.
    """
    named = [] if model is None else ["--model", word_of(model)]
    return _answer("explain", PLAN, *named, model=model, plan=plan, **options)


def _mebibytes(row) -> str:
    return f"{max(row['peak_bytes']) / 2**20:.2f} MiB"


def _answer(*words, **rest) -> dict:
    return json.loads(ask(*words, "--json", **rest))
