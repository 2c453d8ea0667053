"""What odd modules have in common: two layers around something odd, and the list they are in."""

from dataclasses import dataclass, field

import torch
from torch import nn
from torch.nn import functional as F

WIDTH, ROWS, TOKENS = 8, 4, 12
ODD = {}  # name -> Row


@dataclass
class Row:
    """One odd module. `refused`: what must be said where "capture" or "parallelize" refuses it."""

    kind: type
    refused: dict = field(default_factory=dict)


def odd(kind=None, **refused):
    """Puts a class into the list."""
    def add(kind):
        ODD[kind.__name__] = Row(kind, refused)
        return kind
    return add(kind) if kind else add


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 2 * WIDTH), nn.Linear(2 * WIDTH, WIDTH)
        self.more()

    def more(self):
        """What an odd module has beside the two layers."""

    def odd(self, h):
        return h

    def cost(self, z, y):
        return F.mse_loss(z, y)

    def forward(self, x, y, ids):
        return self.cost(self.last(self.odd(self.begin(x))), y)

    def begin(self, x):
        """What tensor parallelism can split."""
        return torch.tanh(self.first(x + self.down(torch.tanh(self.up(x)))))


def weight(*shape):
    return nn.Parameter(torch.randn(*shape) * 0.5)
