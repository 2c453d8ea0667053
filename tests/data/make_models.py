"""Rewrites the captured models beside this file: `PYTHONPATH=python python tests/data/make_models.py`."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "python"))

import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

import partita

VOCABULARY, SEQUENCE = 96, 16


def gpt2(layers):
    return GPT2LMHeadModel(GPT2Config(n_layer=layers, n_embd=64, n_head=4, vocab_size=VOCABULARY,
                                      n_positions=SEQUENCE, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0,
                                      bos_token_id=0, eos_token_id=0))


def llama(layers):
    return LlamaForCausalLM(LlamaConfig(num_hidden_layers=layers, hidden_size=64, num_attention_heads=4,
                                        num_key_value_heads=2, intermediate_size=96, vocab_size=VOCABULARY,
                                        max_position_embeddings=SEQUENCE, bos_token_id=0, eos_token_id=0))


class ConvNet(torch.nn.Module):
    """Convolutions with a skip and BatchNorm: padded, strided, of 1 x 1, in groups, and in tiles. None has a bias that a
    BatchNorm takes out again: its gradient would be rounding alone."""

    def __init__(self, classes=5):
        super().__init__()
        self.first = torch.nn.Conv2d(3, 6, 3, padding=1, bias=False)
        self.norms = torch.nn.ModuleList(torch.nn.BatchNorm2d(channels) for channels in (6, 10, 10))
        self.down = torch.nn.Conv2d(6, 10, 3, stride=2, padding=1, bias=False)
        self.skip = torch.nn.Conv2d(6, 10, 1, stride=2)
        self.grouped = torch.nn.Conv2d(10, 10, 3, padding=1, groups=2, bias=False)
        self.mix = torch.nn.Conv2d(10, 10, 1, bias=False)
        self.tiles, self.head = torch.nn.Conv2d(10, 7, 5, stride=5), torch.nn.Linear(7, classes)

    def forward(self, image, label):
        x = torch.relu(self.norms[0](self.first(image)))
        y = torch.relu(self.norms[1](self.down(x)))
        y = torch.relu(self.norms[2](self.mix(self.grouped(y))) + self.skip(x))
        return torch.nn.functional.cross_entropy(self.head(self.tiles(y).mean((2, 3))), label)


class Odd(torch.nn.Module):
    """What Transformers seldom have: two parameters of one gradient, a buffer that counts, a frozen parameter, sums of views
    that overlap, a diagonal, dropout, and ops whose rows experiments find."""

    def __init__(self, width=6, points=4):
        super().__init__()
        self.enter, self.head = torch.nn.Linear(5, width), torch.nn.Linear(points, 3)
        self.p1, self.p2 = torch.nn.Parameter(torch.randn(width)), torch.nn.Parameter(torch.randn(width))
        self.frozen = torch.nn.Parameter(torch.randn(width), requires_grad=False)
        self.diagonal, self.points = torch.nn.Parameter(torch.randn(width)), torch.nn.Parameter(torch.randn(points, width - 1))
        self.register_buffer("count", torch.zeros(()))
        self.register_buffer("shift", torch.randn(width))

    def forward(self, x, wanted):
        self.count.add_(torch.full((), 1.0))
        y = self.enter(x) + (self.p1 + self.p2) + self.shift + self.frozen
        y = torch.special.i0e(y @ (torch.diag_embed(self.diagonal) + torch.eye(len(self.diagonal))))
        z = torch.dropout(y[:, :, 1:] + y[:, :, :-1], 0.2, True)
        near = torch.cdist(z, self.points.expand(len(x), -1, -1), p=1.0)
        return torch.nn.functional.mse_loss(self.head(near), wanted)


def odd(batch, length=3):
    return partita.capture(Odd().train(), {"x": torch.zeros(batch, length, 5), "wanted": torch.zeros(batch, length, 3)},
                           lambda loss, _: loss)


class Perceptron(torch.nn.Module):
    """Two layers: what the golden cases `lower_*` lower."""

    def __init__(self, width=8, hidden=16, out=4):
        super().__init__()
        self.up, self.down = torch.nn.Linear(width, hidden, bias=False), torch.nn.Linear(hidden, out)

    def forward(self, x, y):
        return torch.nn.functional.mse_loss(self.down(torch.relu(self.up(x))), y)


class Attention(torch.nn.Module):
    """One block of attention with its norm and residual: what the golden cases `lower_attention_*` lower."""

    def __init__(self, width=8, heads=2):
        super().__init__()
        self.heads = heads
        self.norm = torch.nn.RMSNorm(width, eps=1e-5)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width, bias=False), torch.nn.Linear(width, width, bias=False)

    def forward(self, x, y):
        q, k, v = (part.unflatten(2, (self.heads, -1)).transpose(1, 2) for part in self.qkv(self.norm(x)).chunk(3, 2))
        read = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return torch.nn.functional.mse_loss(x + self.out(read.transpose(1, 2).flatten(2)), y)


def regression(module, *shape):
    return partita.capture(module, {"x": torch.zeros(*shape), "y": torch.zeros(*shape[:-1], 4 if len(shape) == 2 else 8)},
                           lambda loss, _: loss)


def text(module, batch):
    ids = torch.arange(batch * SEQUENCE).reshape(batch, SEQUENCE) % VOCABULARY
    return partita.capture(module, {"input_ids": ids, "labels": ids})


def convnet(batch, size=19):
    samples = {"image": torch.zeros(batch, 3, size, size), "label": torch.arange(batch) % 5}
    return partita.capture(ConvNet().train(), samples, lambda loss, _: loss)


# file name -> the captured step
MODELS = {
    "gpt2-tiny": lambda: text(gpt2(2), 4),
    "gpt2-tiny4": lambda: text(gpt2(4), 8),
    "llama-tiny": lambda: text(llama(2), 4),
    "llama-tiny4": lambda: text(llama(4), 8),
    "convnet-tiny": lambda: convnet(6),
    "odd-tiny": lambda: odd(4),
    "mlp": lambda: regression(Perceptron(), 4, 8),
    "attention": lambda: regression(Attention(), 2, 4, 8),
}


def make(name):
    model = MODELS[name]()
    model.name = name
    return model


if __name__ == "__main__":
    for name in MODELS:
        model = make(name)
        model.save(HERE / f"{name}.model.json")
        print(f"{name}: {len(model.ops)} ops, {len(model.tensors)} tensors")
