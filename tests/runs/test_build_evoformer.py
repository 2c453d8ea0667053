"""The built Evoformer stack against one written in PyTorch: recycling runs three times, the last is differentiated."""

import subprocess

import torch
from torch import nn
from torch.nn import functional as F

from partita.native import command, library
from replay import replay

BLOCKS, MSA, PAIR, HEAD, OUTER, TRIANGLE, SEQUENCES, BINS = 2, 32, 16, 8, 8, 16, 4, 8
MSA_HEADS, PAIR_HEADS, RECYCLES, BATCH, LENGTH = 4, 2, 3, 2, 8


class Attention(nn.Module):
    def __init__(self, width, heads, bias_width=None):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v = (nn.Linear(width, heads * HEAD, bias=False) for _ in range(3))
        self.gate, self.out = nn.Linear(width, heads * HEAD), nn.Linear(heads * HEAD, width)
        self.norm = nn.LayerNorm(width)
        if bias_width:
            self.bias = nn.Linear(bias_width, heads, bias=False)

    def attend(self, x, bias_from=None):
        """x: [b, m, l, c]; the bias is [b, l, l, heads]."""
        q, k, v = (p(x).unflatten(-1, (self.heads, HEAD)) for p in (self.q, self.k, self.v))
        scores = torch.einsum("bmihd,bmjhd->bmhij", q, k) * HEAD**-0.5
        if bias_from is not None:
            scores = scores + self.bias(bias_from).permute(0, 3, 1, 2)[:, None]
        out = torch.einsum("bmhij,bmjhd->bmihd", scores.softmax(-1), v).flatten(-2)
        return self.out(out * torch.sigmoid(self.gate(x)))


class MsaRow(Attention):
    def __init__(self):
        super().__init__(MSA, MSA_HEADS, PAIR)
        self.norm_pair = nn.LayerNorm(PAIR)


class Transition(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.wide, self.narrow = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.narrow(torch.relu(self.wide(self.norm(x))))


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.out = nn.LayerNorm(MSA), nn.Linear(OUTER * OUTER, PAIR)
        self.left, self.right = nn.Linear(MSA, OUTER), nn.Linear(MSA, OUTER)

    def forward(self, msa, pair):
        x = self.norm(msa)
        mean = torch.einsum("bsic,bsjd->bijcd", self.left(x), self.right(x)) / SEQUENCES
        return pair + self.out(mean.flatten(-2))


class Triangle(nn.Module):
    def __init__(self, equation):
        super().__init__()
        self.equation = equation
        self.norm, self.norm_out = nn.LayerNorm(PAIR), nn.LayerNorm(TRIANGLE)
        self.left, self.left_gate, self.right, self.right_gate = (nn.Linear(PAIR, TRIANGLE) for _ in range(4))
        self.out, self.gate = nn.Linear(TRIANGLE, PAIR), nn.Linear(PAIR, PAIR)

    def forward(self, pair):
        x = self.norm(pair)
        left = torch.sigmoid(self.left_gate(x)) * self.left(x)
        right = torch.sigmoid(self.right_gate(x)) * self.right(x)
        product = self.norm_out(torch.einsum(self.equation, left, right))
        return pair + torch.sigmoid(self.gate(x)) * self.out(product)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.msa_row, self.msa_column = MsaRow(), Attention(MSA, MSA_HEADS)
        self.msa_transition, self.outer = Transition(MSA), Outer()
        self.triangle_outgoing = Triangle("bikc,bjkc->bijc")
        self.triangle_incoming = Triangle("bkic,bkjc->bijc")
        self.triangle_start = Attention(PAIR, PAIR_HEADS, PAIR)
        self.triangle_end = Attention(PAIR, PAIR_HEADS, PAIR)
        self.pair_transition = Transition(PAIR)

    def forward(self, msa, pair):
        row, column = self.msa_row, self.msa_column
        msa = msa + row.attend(row.norm(msa), row.norm_pair(pair))
        msa = msa + column.attend(column.norm(msa.transpose(1, 2))).transpose(1, 2)
        msa = self.msa_transition(msa)
        pair = self.triangle_incoming(self.triangle_outgoing(self.outer(msa, pair)))
        x = self.triangle_start.norm(pair)
        pair = pair + self.triangle_start.attend(x, x)
        x = self.triangle_end.norm(pair.transpose(1, 2))
        pair = pair + self.triangle_end.attend(x, x).transpose(1, 2)
        return msa, self.pair_transition(pair)


class Evoformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.ModuleDict({"msa": nn.Linear(49, MSA), "target": nn.Linear(22, MSA),
                                    "left": nn.Linear(22, PAIR), "right": nn.Linear(22, PAIR)})
        self.recycle = nn.ModuleDict({"norm_msa": nn.LayerNorm(MSA), "norm_pair": nn.LayerNorm(PAIR)})
        self.blocks = nn.ModuleList(Block() for _ in range(BLOCKS))
        self.distogram = nn.Linear(PAIR, BINS)

    def run(self, batch, row, pair):
        embed, target = self.embed, batch["target"]
        msa = embed["msa"](batch["msa"]) + embed["target"](target)[:, None]
        fresh = embed["left"](target)[:, :, None] + embed["right"](target)[:, None]
        msa = torch.cat([msa[:, :1] + self.recycle["norm_msa"](row)[:, None], msa[:, 1:]], 1)
        pair = fresh + self.recycle["norm_pair"](pair)
        for block in self.blocks:
            msa, pair = block(msa, pair)
        return msa, pair

    def forward(self, batch):
        row, pair = torch.zeros(BATCH, LENGTH, MSA).double(), torch.zeros(BATCH, LENGTH, LENGTH, PAIR).double()
        for _ in range(RECYCLES):
            msa, pair = self.run(batch, row.detach(), pair.detach())
            row = msa[:, 0]
        return F.cross_entropy(self.distogram(pair).flatten(0, 2), batch["labels"].flatten())


def test_equals_pytorch(tmp_path):
    torch.manual_seed(0)
    module = Evoformer().double()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.02)
    batch = {"msa": torch.randn(BATCH, SEQUENCES, LENGTH, 49).double(), "target": torch.randn(BATCH, LENGTH, 22).double(),
             "labels": torch.randint(0, BINS, (BATCH, LENGTH, LENGTH))}
    path = tmp_path / "evoformer.model.json"
    subprocess.run([command(), "models", "evoformer-tiny", "--dtype", "float64", "-o", path], check=True)
    loss, gradients, _ = library().run_step(path.read_text(), dict(module.named_parameters()), batch)
    replay(path.read_text(), {**dict(module.named_parameters()), **batch})  # strides are what PyTorch makes
    wanted = module(batch)
    wanted.backward()
    assert abs(loss - wanted.item()) < 1e-10
    assert gradients.keys() == dict(module.named_parameters()).keys()
    for name, gradient in gradients.items():
        assert torch.allclose(gradient, module.get_parameter(name).grad, rtol=1e-10, atol=1e-10), name
