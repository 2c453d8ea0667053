"""One step in plain PyTorch, with the calls that train_loop.py makes of a Step."""

from types import SimpleNamespace

import torch
from torch import nn


class PlainStep:
    def __init__(self, module, optimizer, loss):
        self._module, self.optimizer, self.loss, self.count, self.metrics = module, optimizer, loss, 0, None

    def __call__(self, x, y):
        self.optimizer.zero_grad()
        value = self.loss(self._module(x), y)
        value.backward()
        norm = nn.utils.clip_grad_norm_(self._module.parameters(), 1.0)
        self.optimizer.step()
        self.count += 1
        self.metrics = SimpleNamespace(step=self.count, grad_norm=norm.item())
        return value.item()

    @torch.no_grad()
    def evaluate(self, x, y):
        self._module.eval()
        value = self.loss(self._module(x), y).item()
        self._module.train()
        return value

    def module(self):
        return self._module
