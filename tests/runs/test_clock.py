"""train on the virtual and the emulated clock, its traces, and runs that fail."""

import json
import subprocess

import pytest

from conftest import ROOT
from partita.native import command

MODEL = ROOT / "tests/data/gpt2-tiny4.model.json"


def partita(*words, code=0):
    done = subprocess.run([command(), *map(str, words)], capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout) if code == 0 and "--json" in words else done.stderr


@pytest.fixture(scope="module", params=["zb-h1", "wave", "dp and zero"])
def plan(request, tmp_path_factory):
    file = tmp_path_factory.mktemp("plan") / "plan.json"
    how = ["--ranks", 4, "--dp", 2, "--pp", 2, "--zero", 3] if request.param == "dp and zero" else \
        ["--ranks", 2, "--pp", 2, "--schedule", request.param]
    partita("recipe", "pipeline", MODEL, *how, "--microbatches", 4, "-o", file)
    return file


def test_virtual_time_and_counted_bytes_are_those_of_the_simulation(plan, tmp_path):
    cluster = "4xA100-80GB"
    expected = partita("simulate", MODEL, plan, "--cluster", cluster, "--contention", "off", "--trace",
                       tmp_path / "simulated.json", "--json")
    named = json.loads(plan.read_text()) | {"cluster": cluster}
    (tmp_path / "plan.json").write_text(json.dumps(named))
    run = partita("train", MODEL, tmp_path / "plan.json", "--steps", 2, "--clock", "virtual", "--trace",
                  tmp_path / "run.json", "--json")
    assert [step["seconds"] for step in run["steps"]] == [expected["step_seconds"]] * 2
    assert run["measured_peak_bytes"] == expected["peak_bytes"]
    events = [json.loads((tmp_path / f"{name}.json").read_text())["traceEvents"] for name in ("simulated", "run")]
    bodies = [sorted((e["pid"], e["name"], e["ts"], e["dur"]) for e in some if e["ph"] == "X") for some in events]
    assert bodies[0] == bodies[1] and len(bodies[0]) > 8


def test_emulated_bodies_take_what_they_are_told(plan):
    run = partita("train", MODEL, plan, "--steps", 1, "--clock", "emulated", "--forward-seconds", 0.004, "--link-delay",
                  0.001, "--link-rate", "1GB", "--json")
    # Forward through two stages and back is the least; four micro-batches of three units are as well.
    assert run["steps"][0]["seconds"] >= 0.004 * 12


def test_a_rank_that_fails_ends_the_run_and_is_named(plan):
    told = partita("train", MODEL, plan, "--inject", "1:2:3:throw", code=4)
    assert "rank 1, step 2, action 3 (" in told and "a fault was put here" in told
    told = partita("train", MODEL, plan, "--inject", "0:1:4:stall", "--deadline", 1, code=4)
    assert "no rank has gone on for 1 s" in told and "rank 0, step 1, action 4 (" in told and "peer 0" in told
