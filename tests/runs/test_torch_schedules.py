"""Schedules of torch.distributed.pipelining, exported by its own code here and now: import, evaluate, round-trip."""

import json
import pathlib
import subprocess
import sys

import pytest
from partita.native import command

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "data/torch_schedules"))
from export import write  # noqa: E402
from torch.distributed.pipelining._schedule_visualizer import get_schedule_ops  # noqa: E402

# PyTorch's name, ranks, micro-batches, stages a rank
CASES = [
    ("1F1B", 2, 2, 1), ("1F1B", 4, 8, 1), ("1F1B", 8, 20, 1),
    ("Interleaved1F1B", 2, 6, 2), ("Interleaved1F1B", 4, 12, 3),
    ("ZBVZeroBubble", 2, 4, 2), ("ZBVZeroBubble", 6, 14, 2),
    ("DualPipeV", 2, 6, 2), ("DualPipeV", 4, 10, 2),
]


def lab(*arguments):
    done = subprocess.run([command(), "lab", "schedule", "--json", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def computation(path):
    rows = [line.split(",") for line in path.read_text().split()]
    return [[cell for cell in row if cell and "REDUCE" not in cell and "SHARD" not in cell] for row in rows]


@pytest.mark.parametrize("name, ranks, microbatches, stages", CASES)
def test_import_evaluate_and_round_trip(tmp_path, name, ranks, microbatches, stages):
    theirs, ours = tmp_path / "theirs.csv", tmp_path / "ours.csv"
    write(theirs, get_schedule_ops(name, ranks, microbatches, stages))
    costs = ["--input-grad", 1, "--weight-grad", 1, "--unit", "chunk"]
    first = lab("--csv", theirs, "--write-csv", ours, *costs)
    assert not first["deadlock"]
    assert (first["devices"], first["stages"], first["microbatches"]) == (ranks, ranks * stages, microbatches)
    again = lab("--csv", ours, *costs)
    assert again == first
    cells = computation(theirs)
    if name == "1F1B":  # PyTorch numbers the forwards of the last rank one too high
        cells[-1] = [cell if "F" not in cell else f"{ranks - 1}F{int(cell.split('F')[1]) - 1}" for cell in cells[-1]]
    assert computation(ours) == cells


def test_one_f_one_b_is_ours(tmp_path):
    theirs, ours = tmp_path / "theirs.csv", tmp_path / "ours.csv"
    write(theirs, get_schedule_ops("1F1B", 4, 8, 1))
    lab("--csv", theirs, "--write-csv", theirs)
    answer = lab("--name", "1f1b", "--devices", 4, "--microbatches", 8, "--csv", ours)
    assert theirs.read_text() == ours.read_text()
    assert answer["makespan"] == "33"
