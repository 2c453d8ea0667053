"""Plans, profiles and checks are made in this process: no child, no file, the interpreter free, Ctrl-C heard."""

import json
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time

import pytest
import torch

import partita
from conftest import ROOT
from partita.native import command, library
from small_lm import batch, lm

SOON = 1.0  # seconds; a third of one where each core has three others to run
LONG = {"cluster": "64x8xH100-80GB", "batch": 512, "dtype": "bf16", "effort": 5, "strict": True}  # minutes


@pytest.fixture(scope="module")
def model():
    return partita.capture(lm(), batch())


@pytest.fixture
def alone(monkeypatch, tmp_path):
    """Nothing may start a process or write a file, in this folder or in that of temporary ones."""
    def refused(*args, **kwargs):
        raise AssertionError(f"a child process or a temporary file: {args}")

    temporary, here = tmp_path / "temporary", tmp_path / "here"
    temporary.mkdir(), here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr(tempfile, "tempdir", None)
    for module, name in ((subprocess, "Popen"), (os, "fork"), (os, "posix_spawn"), (os, "system"), (tempfile, "mkstemp"),
                         (tempfile, "mkdtemp"), (tempfile, "TemporaryDirectory")):
        monkeypatch.setattr(module, name, refused)
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt
    yield
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt == children
    assert list(temporary.iterdir()) == list(here.iterdir()) == []


def with_order(plan):
    return plan.with_data({**plan.data, "order": ["0F0,0B0,0F1,0B1", "1F0,1B0,1F1,1B1"]})


ASKS = {
    "plan": lambda model: partita.plan(model, "2xcpu", effort=1, strict=True),
    "recipe": lambda model: partita.recipe("tp", model, ranks=2),
    "verify": lambda model: partita.verify(model, partita.recipe("dp", model, ranks=2), dtype="float64")["equal"] or 1 / 0,
    "profile": lambda model: partita.profile(model, optimizer="adamw", at_peak=True),
    "explain": lambda model: partita.explain(partita.recipe("dp", model, ranks=2), model, cluster="2xcpu"),
    "schedule": lambda model: partita.recipe("pipeline", model, ranks=2).schedule(),
    "schedule of one's own": lambda model: with_order(partita.recipe("pipeline", model, ranks=2)).schedule(),
    "design": lambda model: partita.design(model, 2).split("*", "batch", 2).plan(),
}


@pytest.mark.parametrize("name", ASKS)
def test_no_child_and_no_file(name, model, alone):
    assert ASKS[name](model)


def test_parallelize_and_a_step(alone):
    module = lm()
    step = partita.parallelize(module, batch(), torch.optim.AdamW(module.parameters()), ranks=2, strict=True)
    assert step(batch()) > 0


def test_a_model_is_parsed_once(monkeypatch):
    texts, module = [], lm()
    model = partita.capture(module, batch())
    told = partita.Model.to_json
    monkeypatch.setattr(partita.Model, "to_json", lambda self: texts.append(self) or told(self))
    plan = partita.plan(model, "2xcpu", effort=1, strict=True)
    assert partita.verify(model, plan)["equal"] and partita.profile(model) and partita.recipe("dp", model, ranks=2)
    model.run(module, batch())
    assert texts == [model]
    model.name = "another"  # is another step
    assert partita.recipe("dp", model, ranks=2).data["model"].startswith("another#") and len(texts) == 2


def answer_of(*words, **options):
    return subprocess.run([command(), *map(str, words)], capture_output=True, text=True, **options)


def test_answers_are_those_of_the_command(model, tmp_path):
    model.save(tmp_path / "step.model.json")
    plan = partita.plan(model, "2xcpu", effort=1, strict=True, optimizer="sgd", clip=1.0)
    plan.save(tmp_path / "plan.json")

    def told(*words):
        return json.loads(answer_of(*words, "--json", cwd=tmp_path).stdout)

    flags = ["--cluster", "2xcpu", "--effort", 1, "--strict", "--optimizer", "sgd", "--clip", 1.0]
    found = told("plan", "step.model.json", *flags)
    assert (found["plans"], found["lost"]) == (plan.ranked, plan.lost) and found["plans"][0]["plan"] == plan.data
    one, two = told("profile", "step.model.json", "--fit", "80GiB"), partita.profile(model, fit="80GiB")
    assert one.pop("seconds_to_profile") > 0 < two.pop("seconds_to_profile") and one == two
    assert told("explain", "plan.json", "--model", "step.model.json") == partita.explain(plan, model)
    assert told("recipe", "zero3", "step.model.json", "--ranks", 2)["plan"] == partita.recipe("zero3", model, ranks=2).data
    one, two = told("verify", "step.model.json", "plan.json"), partita.verify(model, plan)
    assert one.pop("measured_peak_bytes") and two.pop("measured_peak_bytes") and one == two
    drawn = answer_of("lab", "schedule", "--show", "--name", "1f1b", "--devices", 2, "--microbatches", 2, "--forward", 1,
                      "--backward", 2)
    assert partita.recipe("pipeline", model, ranks=2).schedule() == drawn.stdout.rstrip("\n")


def test_presets_and_files_by_name(model, tmp_path):
    model.save(tmp_path / "net.model.json")
    assert partita.recipe("dp", tmp_path / "net.model.json", ranks=2).data == partita.recipe("dp", model, ranks=2).data
    plan = partita.plan("gpt2-tiny", "2xcpu", effort=1, strict=True)
    assert partita.explain(plan)["summary"] == plan.summary()


WRONG = {
    "nothing fits": (("plan", "step.model.json", "--cluster", "2xcpu", "--memory", "20KiB", "--effort", 1, "--strict"),
                     lambda model, plan: partita.plan(model, "2xcpu", "20KiB", effort=1, strict=True)),
    "unknown cluster": (("plan", "step.model.json", "--cluster", "2xcpi"), lambda model, plan: partita.plan(model, "2xcpi")),
    "unknown flag": (("plan", "step.model.json", "--cluster", "2xcpu", "--tpo", 3),
                     lambda model, plan: partita.plan(model, "2xcpu", tpo=3)),
    "no number": (("plan", "step.model.json", "--cluster", "2xcpu", "--top", "many"),
                  lambda model, plan: partita.plan(model, "2xcpu", top="many")),
    "another batch": (("plan", "step.model.json", "--cluster", "2xcpu", "--batch", 64),
                      lambda model, plan: partita.plan(model, "2xcpu", batch=64)),
    "any batch of what is captured": (("plan", "step.model.json", "--cluster", "2xcpu", "--batch", "auto"),
                                      lambda model, plan: partita.plan(model, "2xcpu", batch="auto")),
    "recipe misspelt": (("recipe", "dpp", "step.model.json", "--ranks", 2), lambda model, plan: partita.recipe("dpp", model, 2)),
    "a file that is not there": (("plan", "step.model.json", "--cluster", "2xcpu", "--pin", "missing.json"),
                                 lambda model, plan: partita.plan(model, "2xcpu", pin="missing.json")),
    "a preset that is not there": (("profile", "gpt3-tiny"), lambda model, plan: partita.profile("gpt3-tiny")),
    "other ranks": (("verify", "step.model.json", "plan.json", "--ranks", 3),
                    lambda model, plan: partita.verify(model, plan, ranks=3)),
    "another model": (("explain", "plan.json", "--model", "gpt2-tiny", "--cluster", "2xcpu"),
                      lambda model, plan: partita.explain(plan, "gpt2-tiny", cluster="2xcpu")),
    "no cluster": (("explain", "plan.json", "--model", "step.model.json"), lambda model, plan: partita.explain(plan, model)),
}


@pytest.mark.parametrize("name", WRONG)
def test_texts_of_errors_are_those_of_the_command(name, model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words, call = WRONG[name]
    plan = partita.recipe("dp", model, ranks=2)
    model.save("step.model.json")
    plan.save("plan.json")
    told = answer_of(*words)
    with pytest.raises((partita.InputError, partita.Infeasible)) as error:
        call(model, plan)
    kind, _, text = told.stderr.strip().partition(": ")
    assert (told.returncode, kind) == ((1, "nothing fits") if error.type is partita.Infeasible else (2, "error"))
    assert str(error.value) == text


def test_a_plan_that_does_not_suit_a_model_is_not_run(model):
    data = partita.recipe("dp", model, ranks=2).data
    other = partita.capture(lm(size=8), batch())
    module = lm(size=8)
    with pytest.raises(partita.InputError, match="made for LM"):
        library().Session(other.handle(), other.weights(module), json.dumps(data))


def test_nothing_but_a_plan_is_run(model, tmp_path):
    """What runs is made of a plan and certified on the way; a Program, right or wrong, has no door."""
    plan = partita.recipe("dp", model, ranks=2)
    model.save(tmp_path / "step.model.json")
    plan.save(tmp_path / "plan.json")
    assert answer_of("lower", "step.model.json", "plan.json", "-o", "program.json", cwd=tmp_path).returncode == 0
    program = (tmp_path / "program.json").read_text()
    with pytest.raises(partita.InputError, match="plan"):
        library().Session(model.handle(), model.weights(lm()), program)
    with pytest.raises(partita.InputError, match="it is no plan"):
        partita.Plan.load(tmp_path / "program.json")
    module = library()
    takes = [thing.__doc__ or "" for owner in (module, module.Session, module.Design) for thing in vars(owner).values()]
    assert any("plan: str" in text for text in takes) and not any("program" in text.lower() for text in takes)


INTERRUPTED = """
import os, signal, sys, threading, time
import partita
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what runs in the background
pressed = []
def press():
    time.sleep(1.5)
    pressed.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)
plan = partita.recipe("pipeline", "llama-3.1-405b", ranks=16, microbatches=256, batch=256)
handler = signal.getsignal(signal.SIGINT)
threading.Thread(target=press, daemon=True).start()
try:
    {call}
    print("ended before")
except KeyboardInterrupt:
    print("seconds", time.monotonic() - pressed[0])
assert signal.getsignal(signal.SIGINT) is handler
partita.recipe("dp", "gpt2-tiny", ranks=2)
"""


@pytest.mark.parametrize("call", [
    f"partita.plan('llama-3.1-405b', **{LONG})",
    f"partita.plan('mixtral-8x22b', **{LONG})",
    "partita.explain(plan, cluster='2x8xH100-80GB')",
])
def test_ctrl_c_is_heard(call):
    script = INTERRUPTED.format(call=call)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
    assert done.returncode == 0, done.stderr
    what, _, seconds = done.stdout.strip().partition(" ")
    print(call, done.stdout)
    assert what == "seconds" and float(seconds) < SOON, done.stdout


def test_progress_is_told_in_this_thread(model):
    told = []
    partita.plan(model, "2xcpu", strict=True, progress=lambda *news: told.append((threading.get_ident(), *news)))
    assert {news[0] for news in told} == {threading.get_ident()}
    phases = [phase for _, phase, *_ in told]
    assert "estimating recipes" in phases and "certifying plans" in phases
    assert all(0 <= done and (done <= all_ or all_ == 0) and (best is None or best > 0) for _, _, done, all_, best in told)
    told.clear()
    partita.verify(model, partita.recipe("dp", model, ranks=2), progress=lambda phase, *rest: told.append(phase))
    assert told == ["lowering and certifying dp2", "running three steps of the plan and of one device"]


class Enough(Exception):
    pass


def test_what_progress_raises_ends_the_search():
    def tell(phase, done, all_, best):
        raise Enough(phase)

    start = time.monotonic()
    with pytest.raises(Enough):
        partita.plan("llama-3.1-405b", **LONG, progress=tell)
    assert time.monotonic() - start < 2 * SOON


def test_other_threads_run_meanwhile(model):
    counted, ended = [0], threading.Event()

    def count():
        while not ended.wait(0.001):
            counted[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    start = time.monotonic()
    partita.plan("gpt2-small", "8xA100-80GB", batch=64, strict=True)
    seconds, during = time.monotonic() - start, counted[0]
    ended.set()
    thread.join()
    assert during > 100 * seconds  # a thousand a second where nothing else runs


def test_two_threads_plan_at_once(model):
    alone = partita.plan(model, "2xcpu", strict=True).data
    found = [None, None]

    def find(i):
        found[i] = partita.plan(model, "2xcpu", strict=True).data

    threads = [threading.Thread(target=find, args=(i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [alone, alone]
