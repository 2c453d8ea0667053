"""lab strategies: an independent solver finds the same optimum, and the plan trains what one device trains."""

import json
import subprocess

import highspy
import numpy
import pytest

from conftest import ROOT
from partita.native import command


def strategies(model, cluster, mesh, *more):
    words = [command(), "lab", "strategies", model, "--cluster", cluster, "--mesh", mesh, "--json", *more]
    return json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def solve_with_highs(path):
    """The least objective. In units of the largest cost: tolerances of a solver are absolute."""
    highs = highspy.Highs()
    for name, value in {"output_flag": False, "mip_rel_gap": 0.0, "mip_abs_gap": 0.0}.items():
        highs.setOptionValue(name, value)
    highs.readModel(str(path))
    program = highs.getLp()
    costs = numpy.array(program.col_cost_)
    unit = costs.max() / 1e4
    program.col_cost_ = costs / unit
    highs.passModel(program)
    highs.run()
    assert highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return highs.getInfo().objective_function_value * unit


@pytest.mark.parametrize("model, cluster, mesh", [("gpt2-tiny", "2xcpu", "2"), ("llama-tiny", "4xcpu", "4")])
def test_highs_finds_the_same_optimum(model, cluster, mesh, tmp_path):
    found = strategies(model, cluster, mesh, "--mps", str(tmp_path / "problem.mps"))
    assert found["gap"] == 0 and found["bound"] == found["seconds"]
    assert solve_with_highs(tmp_path / "problem.mps") == pytest.approx(found["seconds"], rel=1e-9)


@pytest.mark.parametrize("model, more, kinds", [
    ("gpt2-tiny", [], {"whole", "in"}),
    ("gpt2-tiny", ["--memory", "900kB", "--effort", "1"], {"whole", "in"}),
    (ROOT / "tests/data/llama-tiny4.model.json", ["--effort", "1"], {"whole", "in", "addends"}),
    ("mixtral-tiny", ["--optimizer", "sgd"], {"whole", "in", "addends"}),
])
def test_the_plan_trains_what_one_device_trains(model, more, kinds, tmp_path):
    plan = tmp_path / "plan.json"
    found = strategies(str(model), "2x2xcpu", "2x2", "-o", str(plan), *more)
    splits = {rule["as"].split()[0].rstrip("0123456789:.") for rule in found["plan"]["split"]}
    assert splits >= kinds and found["plan"]["store"]
    words = [command(), "verify", str(model), str(plan), "--ranks", "4", "--dtype", "float64", "--json"]
    said = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    assert said["equal"] and said["max_grad_error"] > 0
