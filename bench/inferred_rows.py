"""Rows by experiment: 40 calls of ops whose rows are known, drawn and hidden, and every liar.

    python bench/inferred_rows.py [SEED] [COUNT]

Exit code 1 where the batch is found in fewer than nine tenths of the calls, or a liar is claimed.
"""

import random
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "bench")]

import torch

from known_calls import CALLS, made
from liars import LIARS, liar
from partita.capture.call import call_of
from partita.capture.experiment import infer_rows

SHARE = 0.9  # of the hidden batches that must be found


def hidden_call(op, arguments, seed):
    arguments = made(arguments, torch.Generator().manual_seed(seed))
    return call_of(op, arguments, {}, op(*arguments))


def liar_call(name, dtype=torch.float32, shape=(4, 8)):
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0)).to(dtype)
    return call_of(liar(name), (x,), {}, x)


def finds_batch(row) -> bool:
    """Is the outermost dimension of the first result a letter that some operand has?"""
    if row is None:
        return False
    operands, results = ([operand.split() for operand in side.split(",")] for side in row.split("->"))
    return not results[0][0].startswith("!") and any(results[0][0] in operand for operand in operands)


def main():
    seed = int(sys.argv[1]) if len(sys.argv) > 1 else random.SystemRandom().randrange(1 << 32)
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 40
    print(f"seed {seed}: {count} of {len(CALLS)} calls, {len(LIARS)} liars", flush=True)
    chosen = random.Random(seed).sample(CALLS, count)
    begin = time.perf_counter()
    rows = infer_rows([hidden_call(op, arguments, seed) for op, arguments in chosen])
    found = [finds_batch(row) for row in rows]
    for (op, _), row, right in zip(chosen, rows, found):
        print(f"{'found ' if right else 'MISSED'} {op}: {row}")
    names = [(name, dtype, shape) for name in LIARS
             for dtype, shape in ((torch.float32, (4, 8)), (torch.float64, (6, 3, 5)), (torch.bfloat16, (4, 8)))]
    claimed = [f"{name} {dtype} {shape}: {row}" for (name, dtype, shape), row in
               zip(names, infer_rows([liar_call(*entry) for entry in names])) if row is not None]
    for line in claimed:
        print(f"CLAIMED {line}")
    print(f"seed {seed}: the batch found in {sum(found)} of {count}; {len(claimed)} of {len(names)} calls of {len(LIARS)} "
          f"liars claimed; {time.perf_counter() - begin:.0f} s")
    return int(sum(found) < SHARE * count or bool(claimed))


if __name__ == "__main__":
    sys.exit(main())
