"""Hidden bytes of convolutions in float32, as the allocator counts them, against the bound of their rows: random shapes, one thread.

    python bench/convolution_workspace.py [COUNT] [SEED]    1000 shapes by default, forward and backward of each; fails where a bound is too low
"""

import json
import math
import random
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))

import torch

from partita.native import library

CHANNELS = [1, 2, 3, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 48, 64, 65, 96, 100, 128, 192, 320]
OF_GROUP = [1, 2, 3, 4, 8, 10, 16, 20, 32]
MASKS = [(1, 1, 1), (1, 1, 1), (1, 1, 0), (0, 1, 1), (0, 1, 0), (1, 0, 0), (0, 0, 1)]
KINDS = ["plain", "plain", "groups", "depthwise", "patches", "points", "strided", "dilated", "transposed"]
LARGEST, MOST_WORK = 2**22, 2**28


@dataclass
class Case:
    kind: str
    x: list
    w: list
    stride: list
    padding: list
    dilation: list
    groups: int
    bias: bool
    mask: tuple
    dense: bool

    @property
    def transposed(self):
        return self.kind == "transposed"

    @property
    def y(self):
        channels = self.w[1] * self.groups if self.transposed else self.w[0]
        return [self.x[0], channels, *map(self.places, self.x[2:], self.w[2:], self.stride, self.padding, self.dilation)]

    def places(self, size, window, stride, padding, dilation):
        reach = dilation * (window - 1) + 1
        return (size - 1) * stride - 2 * padding + reach if self.transposed else (size + 2 * padding - reach) // stride + 1

    def is_possible(self):
        work = self.x[0] * math.prod(self.y[2:]) * math.prod(self.w)
        return min(self.y) > 0 and max(math.prod(self.x), math.prod(self.y)) < LARGEST and work < MOST_WORK


def draw(rng):
    """Of one to three dimensions; batches as data parallelism and micro-batches leave them."""
    while True:
        kind, dims, groups = rng.choice(KINDS), rng.choice([1, 2, 2, 2, 2, 3]), 1
        batch, most = rng.choice([1, 1, 2, 3, 4, 5, 8, 16, 17, 32]), {1: 400, 2: 64, 3: 16}[dims]
        size = [rng.randint(1, most)] * dims if rng.random() < 0.7 else [rng.randint(1, most) for _ in range(dims)]
        window = [rng.choice([1, 2, 3, 3, 3, 4, 5, 7])] * dims if rng.random() < 0.8 else [rng.choice([1, 2, 3, 5]) for _ in range(dims)]
        stride, dilation, padding = [1] * dims, [1] * dims, [rng.choice([0, n // 2, n - 1]) for n in window]
        channels, results = rng.choice(CHANNELS), rng.choice(CHANNELS)
        if kind == "groups" or kind == "transposed" and rng.random() < 0.3:
            groups = rng.choice([2, 3, 4, 8])
            channels, results = groups * rng.choice(OF_GROUP), groups * rng.choice(OF_GROUP)
        if kind == "depthwise":
            groups, results = channels, channels * rng.choice([1, 1, 1, 2, 3])
        if kind == "patches":
            window = stride = [min(rng.choice([2, 4, 7, 8, 14, 16]), 4 if dims == 3 else 16)] * dims
            padding, size, channels = [0] * dims, [n * rng.randint(1, max(1, most // n)) for n in window], rng.choice([1, 3, 3, 3, channels])
        if kind == "points":
            window, padding, stride = [1] * dims, [0] * dims, [rng.choice([1, 1, 2])] * dims
        if kind == "strided":
            stride = [rng.choice([2, 3])] * dims
        if kind == "dilated":
            dilation = [rng.choice([2, 3])] * dims
            padding = [rng.choice([0, d * (n // 2)]) for d, n in zip(dilation, window)]
        if kind == "transposed":
            stride, padding = [rng.choice([1, 2, 2, 3])] * dims, [rng.choice([0, n // 2]) for n in window]
        weight = [channels, results // groups] if kind == "transposed" else [results, channels // groups]
        case = Case(kind, [batch, channels, *size], [*weight, *window], stride, padding, dilation, groups, rng.random() < 0.7,
                    rng.choice(MASKS), rng.random() < 0.9)
        if case.is_possible():
            return case


def strides(shape, dense):
    """Row by row, or with the last two dimensions swapped in memory."""
    order = list(range(len(shape)))
    if not dense:
        order[-2:] = order[:-3:-1]
    found, step = [0] * len(shape), 1
    for d in reversed(order):
        found[d], step = step, step * shape[d]
    return found


def model_of(case, dtype):
    """One call and its gradient on tensors of the batch. Where x is not to be dense, the transpose of one that is."""
    tensors, ops = [], []

    def tensor(name, shape, role=None, dense=True):
        told = {"name": name, "shape": shape, "stride": strides(shape, dense), "dtype": dtype}
        tensors.append({**told, "role": role} if role else told)
        return len(tensors) - 1

    def call(name, target, args, out):
        ops.append({"name": name, "target": f"aten.{target}", "args": args, "out": out})

    y, rest = case.y, [case.stride, case.padding, case.dilation, case.transposed, [0] * len(case.stride), case.groups]
    given = case.x if case.dense else [*case.x[:-2], case.x[-1], case.x[-2]]
    x, w, b, gy = (tensor(n, s, "batch") for n, s in (("x", given), ("w", case.w), ("b", [y[1]]), ("gy", y)))
    if not case.dense:
        turned = tensor("turned", case.x, dense=False)
        call("turn", "transpose.int", [f"%{x}", -2, -1], [turned])
        x = turned
    out, loss = tensor("y", y), tensor("loss", [])
    made = [tensor(n, s) if wanted else None for n, s, wanted in zip(("gx", "gw", "gb"), (case.x, case.w, [y[1]]), case.mask)]
    call("convolution", "convolution.default", [f"%{x}", f"%{w}", f"%{b}" if case.bias else None, *rest], [out])
    call("loss", "sum.default", [f"%{out}"], [loss])
    sizes = [y[1]] if case.mask[2] else [0]
    call("backward", "convolution_backward.default", [f"%{gy}", f"%{x}", f"%{w}", sizes, *rest, [bool(m) for m in case.mask]], made)
    ops[-1]["backward"] = True
    batch = {n: torch.rand(s, dtype=getattr(torch, dtype)) for n, s in (("x", given), ("w", case.w), ("b", [y[1]]), ("gy", y))}
    told = {"format": "partita.model", "version": 1, "name": "convolution", "torch": torch.__version__.split("+")[0], "tensors": tensors,
            "ops": ops, "loss": loss, "gradients": [], "buffers": []}
    return json.dumps(told), batch


def measure(case, dtype="float32"):
    """(op, counted, bound) of the call and of its gradient."""
    model, batch = model_of(case, dtype)
    return [(op, found, bound) for op, _, found, bound, *_ in library().workspace(model, {}, batch) if op in ("convolution", "backward")]


def main():
    count, seed = int(sys.argv[1]) if len(sys.argv) > 1 else 1000, int(sys.argv[2]) if len(sys.argv) > 2 else 1
    torch.set_num_threads(1)
    rng, ratios, low = random.Random(seed), defaultdict(list), 0
    for case in (draw(rng) for _ in range(count)):
        for op, found, bound in measure(case):
            if found > bound:
                print(f"TOO LOW {op}: counted {found}, bound {bound}: {case}")
                low += 1
            for name in ("all", f"{op}, {case.kind}"):
                ratios[name].append(bound / found if found else 1 if bound == 0 else math.inf)
    print(f"seed {seed}: {len(ratios['all'])} calls, {low} bounds too low\n")
    print("| calls | count | exact | bound over counted, median | ninth of ten |\n|---|---|---|---|---|")
    for name, found in sorted(ratios.items()):
        found.sort()
        print(f"| {name} | {len(found)} | {found.count(1)} | {found[len(found) // 2]:.2f} | {found[len(found) * 9 // 10]:.2f} |")
    return 1 if low else 0


if __name__ == "__main__":
    sys.exit(main())
