"""flops of the rows are those of torch's FlopCounterMode, plus attention, which it counts as zero on the CPU.

Usage: rows_flops_test.py <partita command> <source folder>. Captures small modules, profiles the files with the command
and counts an eager step of the same modules.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(sys.argv[2]) / "python"))

import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

import partita

BATCH, LENGTH, HEADS, HEAD = 3, 10, 2, 4


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(HEADS * HEAD, 3 * HEADS * HEAD)

    def forward(self, x):
        q, k, v = self.qkv(x).view(BATCH, LENGTH, 3, HEADS, HEAD).permute(2, 0, 3, 1, 4).unbind(0)
        return nn.functional.scaled_dot_product_attention(q, k, v)


class Products(nn.Module):
    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(5, 6))
        self.left, self.right = nn.Parameter(torch.randn(BATCH, 5, 7)), nn.Parameter(torch.randn(BATCH, 7, 6))

    def forward(self, x):
        return torch.baddbmm(self.bias, self.left, self.right) @ x + torch.softmax(x, -1).sum()


PAIR = 2 * BATCH * HEADS * LENGTH * LENGTH * HEAD  # one product of queries and keys
# name -> (module, input, flops of attention: two products forward, five backward)
CASES = {
    "linear": (nn.Sequential(nn.Linear(4, 5), nn.GELU(), nn.LayerNorm(5), nn.Linear(5, 6)), (BATCH, LENGTH, 4), 0),
    "products": (Products(), (BATCH, 6, 8), 0),
    "convolution": (nn.Sequential(nn.Conv2d(4, 6, 3, 2, 1), nn.Conv2d(6, 6, 3, groups=3, bias=False)),
                    (BATCH, 4, 9, 8), 0),
    "transposed": (nn.Sequential(nn.Conv1d(4, 6, 2, 2), nn.ConvTranspose1d(6, 4, 3, 2, groups=2)), (BATCH, 4, 8), 0),
    "attention": (Attention(), (BATCH, LENGTH, HEADS * HEAD), 7 * PAIR),
}


def counted(module, x):
    with FlopCounterMode(display=False) as counter:
        module(x).sum().backward()
    return counter.get_total_flops()


def profiled(module, x, folder):
    path = Path(folder) / "case.model.json"
    partita.capture(module, (x,), loss=lambda output, batch: output.sum()).save(path)
    command = [sys.argv[1], "profile", str(path), "--device", "A100-80GB", "--json"]
    flops = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["flops"]
    return flops["forward"] + flops["backward"]


def main():
    torch.manual_seed(0)
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, (module, shape, attention) in CASES.items():
            x = torch.randn(shape)
            expected, found = counted(module, x) + attention, profiled(module, x, folder)
            wrong += expected != found
            print(f"{name}: counted {expected}, profiled {found}")
    sys.exit(wrong > 0)


main()
