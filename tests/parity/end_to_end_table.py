"""Captures, plans and trains every model of the zoo beside eager PyTorch, and writes docs/evidence/end_to_end.md.

    python tests/parity/end_to_end_table.py [--only NAME ...] [--share K] [--at RANKS PERCENT] [--workers N] [--faults FOLDER]
        [--write]

A model runs at one pair of ranks and limit drawn by a hash of its name; 24 of them, spread over the kinds, at every pair.
Exit code 1 where a row fails, or too many models are refused. --faults leaves every failed row there, to see it again.
"""

import argparse
import hashlib
import itertools
import multiprocessing
import queue
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "python")]

import torch
import transformers

from end_to_end import Row, Subject, keep_fault, run
from zoo import KINDS, ZOO

PAGE = HERE.parents[1] / "docs" / "evidence" / "end_to_end.md"
RANKS, PERCENTS = (2, 3, 4, 8), (60, 35)
GRID = 24             # models at every pair of ranks and limit
ROW_SECONDS = 300     # a row that takes longer hangs
MOST_REFUSED = 0.05   # of the models


def drawn(text: str) -> int:
    """A number that only the text decides, in every process."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])


def on_the_grid() -> set:
    """Of each kind in turn the model whose hash comes next."""
    kinds = [sorted((case.name for case in cases), key=lambda name: drawn(f"grid {name}")) for cases in KINDS.values()]
    turns = itertools.chain.from_iterable(itertools.zip_longest(*kinds))
    return set(itertools.islice((name for name in turns if name), GRID))


def pairs_of(name: str) -> list:
    every = list(itertools.product(RANKS, PERCENTS))
    return every if name in on_the_grid() else [every[drawn(name) % len(every)]]


def serve(connection, faults):
    """A worker: takes (name, ranks, percent), gives the row. It keeps the last model."""
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    name, subject = None, None
    with tempfile.TemporaryDirectory() as folder:
        while (task := connection.recv()) is not None:
            row, begin = Row(*task), time.perf_counter()
            try:
                subject, name = subject if name == row.name else Subject(row.name, Path(folder)), row.name
                row = run(subject, row)
            except Exception as error:  # the model cannot be captured, or not planned for one device
                name, row.outcome, row.reason = None, "failed", f"{type(error).__name__}: {error}"
            row.seconds = time.perf_counter() - begin
            if faults and name and row.outcome != "equal":
                keep_fault(Path(faults), subject, row)
            connection.send(row)


class Worker:
    """A process that runs rows; a new one where a row ends or hangs the old one."""

    def __init__(self, faults):
        self.faults, self.process = faults, None

    def run(self, task) -> Row:
        if self.process is None:
            self._start()
        self.connection.send(task)
        try:
            if self.connection.poll(ROW_SECONDS):
                return self.connection.recv()
            said = f"no answer in {ROW_SECONDS} s"
        except EOFError:
            self.process.join()
            said = f"the process ended with {self.process.exitcode}"
        self.process.kill()
        self.process = None
        return Row(*task, outcome="failed", reason=said)

    def stop(self):
        if self.process is not None:
            self.connection.send(None)
            self.process.join()

    def _start(self):
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=serve, args=(theirs, self.faults), daemon=True)
        self.process.start()
        theirs.close()


def run_all(pairs: dict, workers, faults) -> list:
    """The rows of all models, each with its pairs of ranks and limit, in the order of `pairs`."""
    waiting, rows = queue.SimpleQueue(), {}
    for name in pairs:
        waiting.put(name)

    def work():
        worker = Worker(faults)
        while True:
            try:
                name = waiting.get_nowait()
            except queue.Empty:
                break
            rows[name] = [show(worker.run((name, *pair))) for pair in pairs[name]]
        worker.stop()

    threads = [threading.Thread(target=work) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [row for name in pairs for row in rows[name]]


def show(row: Row) -> Row:
    said = f"{row.summary} {row.reason[:200]}"
    print(f"{row.name}, {row.ranks} ranks, {row.percent} %: {row.outcome} {said} ({row.seconds:.1f} s)", file=sys.stderr, flush=True)
    return row


def summary(rows, minutes) -> str:
    models = {row.name for row in rows}
    count = {outcome: sum(row.outcome == outcome for row in rows) for outcome in ("equal", "refused", "failed")}
    least = sum(row.least and row.outcome == "equal" for row in rows)
    refused = len({row.name for row in rows if row.outcome == "refused"})
    return (f"{len(models)} models, {len(rows)} rows: {count['equal']} equal ({least} of them at the least memory named, as "
            f"nothing fits the limit), {count['refused']} refused ({refused} models), {count['failed']} failed; "
            f"{minutes:.0f} minutes.")


HEAD = ["model", "ranks", "limit", "plan", "peak / limit", "gradients", "parameters", "seconds"]


def cells(row: Row) -> list:
    limit = f"least, {row.limit:,} B" if row.least else f"{row.percent} %, {row.limit:,} B"
    if row.outcome != "equal":
        said = row.reason.replace("|", "/").replace("\n", " ")[:300]
        return [row.name, str(row.ranks), limit, f"{row.outcome.upper()}: {said}", "", "", "", f"{row.seconds:.1f}"]
    errors = [f"{row.errors[kind][1]:.0e}" for kind in ("gradient", "parameter")]
    return [row.name, str(row.ranks), limit, row.summary, f"{row.peak / row.limit:.2f}", *errors, f"{row.seconds:.1f}"]


def page(rows, minutes) -> str:
    lines = "\n".join("| " + " | ".join(line) + " |" for line in [HEAD, ["---"] * len(HEAD), *map(cells, rows)])
    return f"""# From module to trained parameters

Every model of the capture zoo in float64: captured, planned for some ranks under a share of what one device needs at its
peak, trained three steps by SGD with momentum on three batches, and compared with eager PyTorch on one device. The loss
and every gradient of every step, and every parameter and buffer after three, are within 1e-9 of eager. An error is the
largest difference in a tensor, relative to the largest value of it; a tensor counts for at least 1e-4 of the largest of
its kind. Casts to fewer bits inside a module are casts to float64 on both sides.
Ranks and limit are drawn by a hash of the model's name; {GRID} models run on 2, 3, 4 and 8 ranks under 60 % and 35 %.
Where nothing fits, the least memory that the planner names is planned and trained. The peak is measured, on the worst rank.
No plan has a warning.

Made by `PYTHONPATH=python python tests/parity/end_to_end_table.py --write`.

{summary(rows, minutes)}

{lines}
"""


def wrong(rows) -> bool:
    refused = {row.name for row in rows if row.outcome == "refused"}
    return any(row.outcome == "failed" for row in rows) or len(refused) > MOST_REFUSED * len({row.name for row in rows})


def chosen(options) -> dict:
    names = options.only or list(ZOO)
    if options.share:
        names = sorted(names, key=lambda name: drawn(f"share {name}"))[:options.share]
    return {name: [tuple(options.at)] if options.at else pairs_of(name) for name in names}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="NAME")
    parser.add_argument("--share", type=int, metavar="K", help="so many models, drawn by a hash")
    parser.add_argument("--at", nargs=2, type=int, metavar=("RANKS", "PERCENT"), help="instead of what the hash draws")
    parser.add_argument("--workers", type=int, default=2, metavar="N")
    parser.add_argument("--faults", metavar="FOLDER")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    unknown = set(options.only or []) - ZOO.keys()
    if unknown:
        parser.error(f"no model is called {', '.join(sorted(unknown))}; known: {', '.join(ZOO)}")
    begin = time.perf_counter()
    rows = run_all(chosen(options), options.workers, options.faults)
    minutes = (time.perf_counter() - begin) / 60
    if options.write:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(page(rows, minutes))
    print(summary(rows, minutes))
    return 1 if wrong(rows) else 0


if __name__ == "__main__":
    sys.exit(main())
