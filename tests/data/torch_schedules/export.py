"""Rewrites the CSV files beside it from torch.distributed.pipelining's own schedules:
`python tests/data/torch_schedules/export.py [FOLDER]`.

NAME.csv is PyTorch's compute-only form, NAME.comms.csv what its lowering adds to it (sends, receives, unshards).
"""

import csv
import pathlib
import sys

from torch.distributed.pipelining._schedule_visualizer import get_schedule_ops

# name, schedule, ranks, micro-batches, stages a rank
SCHEDULES = [
    ("gpipe", "GPipe", 4, 8, 1),
    ("1f1b", "1F1B", 4, 8, 1),
    ("interleaved", "Interleaved1F1B", 4, 8, 2),
    ("looped_bfs", "LoopedBFS", 4, 8, 2),
    ("interleaved_zb", "InterleavedZeroBubble", 4, 8, 2),
    ("zbv", "ZBVZeroBubble", 4, 8, 2),
    ("dualpipev", "DualPipeV", 4, 12, 2),
]


def write(path, rows):
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows(["" if action is None else str(action) for action in row] for row in rows)


def main(folder):
    for name, schedule, ranks, microbatches, stages in SCHEDULES:
        write(folder / f"{name}.csv", get_schedule_ops(schedule, ranks, microbatches, stages))
        if stages > 1 and name != "dualpipev":
            write(folder / f"{name}.comms.csv", get_schedule_ops(schedule, ranks, microbatches, stages, with_comms=True))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
