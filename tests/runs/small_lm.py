"""A small language model of a user's own: RMSNorm, SwiGLU, tied embeddings, dropout; and plain PyTorch beside a Step."""

import torch
from torch import nn

VOCABULARY = 64


class Norm(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * self.weight


class Block(nn.Module):
    def __init__(self, size, dropout):
        super().__init__()
        self.norm, self.dropout = Norm(size), nn.Dropout(dropout)
        self.up, self.gate, self.down = nn.Linear(size, 2 * size), nn.Linear(size, 2 * size), nn.Linear(2 * size, size)

    def forward(self, x):
        y = self.norm(x)
        return x + self.dropout(self.down(nn.functional.silu(self.gate(y)) * self.up(y)))


class LM(nn.Module):
    def __init__(self, size=16, layers=2, dropout=0.0):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, size)
        self.blocks = nn.ModuleList(Block(size, dropout) for _ in range(layers))
        self.norm = Norm(size)
        self.head = nn.Linear(size, VOCABULARY, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, input_ids, labels=None):
        x = self.embedding(input_ids)
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        if labels is None:
            return logits
        return nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())


def lm(seed=0, **options):
    torch.manual_seed(seed)
    return LM(**options)


def batch(rows=4, tokens=8, seed=1):
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(0, VOCABULARY, (rows, tokens), generator=generator)
    labels = torch.randint(0, VOCABULARY, (rows, tokens), generator=generator)
    labels[0, :2] = -100
    return {"input_ids": ids, "labels": labels}


def groups(module, decay=0.1):
    """Decay for matrices, none for vectors, and the embedding slower than both."""
    vectors = [p for p in module.parameters() if p.dim() < 2]
    slow = [module.embedding.weight]
    matrices = [p for p in module.parameters() if p.dim() >= 2 and p is not slow[0]]
    return [{"params": matrices, "weight_decay": decay}, {"params": vectors, "weight_decay": 0.0},
            {"params": slow, "lr": 1e-4, "weight_decay": decay}]


def plain_step(module, optimizer, batch, clip=None):
    """What one step is in plain PyTorch; returns (loss, norm of the gradients)."""
    optimizer.zero_grad()
    loss = module(**batch)
    loss.backward()
    norm = nn.utils.clip_grad_norm_(module.parameters(), clip or float("inf"))
    optimizer.step()
    return loss.item(), norm.item()


def copied(module):
    return {name: value.detach().clone() for name, value in module.state_dict().items()}


def assert_equal(got, want):
    assert got.keys() == want.keys()
    for name in want:
        assert torch.equal(got[name], want[name]), name
