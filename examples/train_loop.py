"""A training loop as people write it, on ranks: decay and no-decay groups, cosine schedule with warm-up, clipping,
evaluation, checkpoint and resume, EMA, a smaller last batch. --plain runs the same loop in plain PyTorch.

    python examples/train_loop.py --ranks 4 --epochs 2 --checkpoint run.pt
"""

import argparse
import math
import os
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

import partita
from plain_step import PlainStep

TEXT = Path(__file__).parent / "data" / "alice.txt"
TOKENS, BATCH = 32, 20


class Block(nn.Module):
    def __init__(self, size, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.norms = nn.ModuleList(nn.LayerNorm(size) for _ in range(2))
        self.qkv, self.out = nn.Linear(size, 3 * size), nn.Linear(size, size)
        self.up, self.down = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(self.norms[0](x)).chunk(3, -1))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        x = x + F.dropout(self.out(mixed), self.dropout, self.training)
        return x + F.dropout(self.down(F.gelu(self.up(self.norms[1](x)))), self.dropout, self.training)


class GPT(nn.Module):
    def __init__(self, vocabulary, dropout, batch_norm=False, size=48):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, size), nn.Embedding(TOKENS, size)
        self.batch_norm = nn.BatchNorm1d(size) if batch_norm else nn.Identity()  # its statistics change in every step
        self.blocks = nn.ModuleList(Block(size, 4, dropout) for _ in range(2))
        self.norm, self.head = nn.LayerNorm(size), nn.Linear(size, vocabulary, bias=False)

    def forward(self, input_ids):
        x = self.batch_norm((self.tokens(input_ids) + self.places.weight).mT).mT
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)).flatten(0, 1)


class LoRA(nn.Module):
    """A frozen linear layer with a trained product of low rank beside it."""

    def __init__(self, base, rank=4):
        super().__init__()
        self.base, self.down = base, nn.Linear(base.in_features, rank, bias=False)
        self.up = nn.Linear(rank, base.out_features, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


def build(variant, vocabulary, dropout):
    torch.manual_seed(0)
    module = GPT(vocabulary, dropout, variant == "batchnorm")
    if variant == "lora":
        module.requires_grad_(False)
        for block in module.blocks:
            block.up, block.down = LoRA(block.up), LoRA(block.down)
    return module


def batches(data, epoch, count):
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(epoch))[:count]
    for rows in order.split(BATCH):  # the last one is smaller
        yield data[rows, :-1], data[rows, 1:].flatten()


def main():
    flags = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    flags.add_argument("--ranks", type=int, default=4)
    flags.add_argument("--epochs", type=int, default=2)
    flags.add_argument("--samples", type=int, default=110, help="of an epoch")
    flags.add_argument("--stop-after", type=int, help="stop after so many epochs, as if somebody had pulled the plug")
    flags.add_argument("--checkpoint", help="written after every epoch; where it exists training goes on from it")
    flags.add_argument("--variant", choices=["gpt", "lora", "batchnorm"], default="gpt")
    flags.add_argument("--dropout", type=float, default=0.0)
    flags.add_argument("--plain", action="store_true", help="plain PyTorch on one device")
    args = flags.parse_args()

    text = torch.frombuffer(bytearray(TEXT.read_bytes()), dtype=torch.uint8)
    letters, ids = text.unique(return_inverse=True)
    data = ids[: len(ids) // (TOKENS + 1) * (TOKENS + 1)].view(-1, TOKENS + 1)
    train, test = data[BATCH:], data[:BATCH]
    module, loss = build(args.variant, len(letters), args.dropout), nn.CrossEntropyLoss()
    ema = AveragedModel(module, multi_avg_fn=get_ema_multi_avg_fn(0.9))

    trained = [p for p in module.parameters() if p.requires_grad]
    groups = [{"params": [p for p in trained if p.dim() >= 2], "weight_decay": 0.1},
              {"params": [p for p in trained if p.dim() < 2], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW([g for g in groups if g["params"]], lr=3e-3, betas=(0.9, 0.95))
    steps = args.epochs * math.ceil(args.samples / BATCH)
    rate = lambda k: min(1, (k + 1) / 3) * (0.55 + 0.45 * math.cos(math.pi * k / steps))
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    step = PlainStep(module, optimizer, loss) if args.plain else partita.parallelize(
        module, (test[:, :-1], test[:, 1:].flatten()), optimizer, ranks=args.ranks, loss=loss, clip=1.0)

    done = 0
    if args.checkpoint and os.path.exists(args.checkpoint):
        saved = torch.load(args.checkpoint, weights_only=True)
        step.load_state_dict(saved["step"])
        scheduler.load_state_dict(saved["scheduler"])
        ema.load_state_dict(saved["ema"])
        done = saved["epochs"]
    for epoch in range(done, args.stop_after or args.epochs):
        for x, y in batches(train, epoch, args.samples):
            value = step(x, y)
            scheduler.step()
            print(f"epoch {epoch} step {step.metrics.step} loss {value:.9g} norm {step.metrics.grad_norm:.3f} "
                  f"lr {optimizer.param_groups[0]['lr']:.2e}")
        ema.update_parameters(step.module())
        print(f"epoch {epoch} evaluation {step.evaluate(test[:, :-1], test[:, 1:].flatten()):.9g}")
        if args.checkpoint:
            state = {"step": step.state_dict(), "scheduler": scheduler.state_dict(), "ema": ema.state_dict(), "epochs": epoch + 1}
            torch.save(state, args.checkpoint + ".part")
            os.replace(args.checkpoint + ".part", args.checkpoint)
    with torch.no_grad():
        print(f"average {loss(ema.module.eval()(test[:, :-1]), test[:, 1:].flatten()).item():.9g}")


if __name__ == "__main__":
    main()
