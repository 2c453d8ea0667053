"""Hidden temporary bytes of ATen kernels, counted by the allocator hook and compared with formulas: one thread a rank.

    python bench/executor_workspace.py            measure; fails where a formula is off by a byte
    python bench/executor_workspace.py --write    and write the table of docs/evidence/workspace.md
"""

import math
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))

import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

import partita
from partita.native import library

PAGE = ROOT / "docs" / "evidence" / "workspace.md"
BEGIN = "<!-- measured: python bench/executor_workspace.py --write -->\n"
FLASH = "aten._scaled_dot_product_flash_attention_for_cpu"


def query_block(queries):
    return min(queries, 256 if queries >= 768 else 64 if queries >= 192 else 32)


def flash(call):
    (_, _, queries, width), (_, _, keys, _) = call.shapes[:2]
    return call.size * query_block(queries) * (min(keys, 512) + 2 + width)


def flash_backward(call):
    queries, keys = call.shapes[1][2], call.shapes[2][2]
    return call.size * query_block(queries) * (2 * min(keys, 512) + 1)


def converted(call):
    """Tensors of another dtype than the result are converted first."""
    return sum(call.size * math.prod(shape) for shape, dtype in zip(call.shapes, call.dtypes) if dtype != call.dtype)


FORMULAS = {
    f"{FLASH}.default": flash,
    f"{FLASH}_backward.default": flash_backward,
    "aten.native_layer_norm_backward.default": lambda call: 2 * math.prod(call.shapes[4]) * call.size,
    "aten.native_group_norm_backward.default": lambda call: 2 * math.prod(call.shapes[1][:2]) * call.size,
    "aten.mean.dim": lambda call: 8 + call.size,
    "aten.mean.default": lambda call: 8 + call.size,
    "aten.logsumexp.default": lambda call: call.size * (math.prod(call.shapes[0]) + math.prod(call.out)),
    "aten.repeat.default": lambda call: 32 * len(call.out),
    "aten.pow.Scalar": lambda call: 8 + (call.size if call.size != 8 else 0),
    "aten.mul.Tensor": converted,
    "aten.sum.default": converted,
}


@dataclass
class Call:
    """What a formula may know: shapes and dtypes of the tensor arguments and of the first result."""
    target: str
    shapes: list
    dtypes: list
    out: list
    dtype: torch.dtype
    found: int

    @property
    def size(self):
        return self.dtype.itemsize


class Attention(torch.nn.Module):
    def __init__(self, heads, width, dtype):
        super().__init__()
        self.heads, self.weight = heads, torch.nn.Parameter(torch.rand(heads * width, dtype=dtype))

    def forward(self, x):
        heads = (x * self.weight).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        mixed = torch.nn.functional.scaled_dot_product_attention(heads, heads, heads, is_causal=True)
        return (mixed.transpose(1, 2).flatten(2) * self.weight).mean()


def attention(sequence, heads, width, dtype):
    x = torch.rand(2, sequence, heads * width, dtype=dtype)
    return Attention(heads, width, dtype), {"x": x}, lambda output, batch: output


class Others(torch.nn.Module):
    """Ops of other models that need workspace."""

    def __init__(self, dtype):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(3, 8, 10, dtype=dtype))

    def forward(self, x):
        y = torch.nn.functional.group_norm(self.weight * x, 4) * x
        y = (2.0 ** y).logsumexp(1).repeat(2, 3)
        mask = y > 0.5
        return (y * mask).sum() * mask.sum()


def others(dtype):
    return Others(dtype), {"x": torch.rand(3, 8, 10, dtype=dtype)}, lambda output, batch: output


def tokens(module, batch, sequence, vocabulary):
    ids = torch.arange(batch * sequence).reshape(batch, sequence) % vocabulary
    return module, {"input_ids": ids, "labels": ids}, None


def gpt2(batch, sequence, hidden, heads, vocabulary, dtype):
    config = GPT2Config(n_layer=1, n_embd=hidden, n_head=heads, vocab_size=vocabulary, n_positions=sequence,
                        resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, bos_token_id=0, eos_token_id=0)
    return tokens(GPT2LMHeadModel(config).to(dtype), batch, sequence, vocabulary)


def llama(batch, sequence, hidden, heads, vocabulary, dtype):
    config = LlamaConfig(num_hidden_layers=1, hidden_size=hidden, intermediate_size=hidden * 3 // 2,
                         num_attention_heads=heads, num_key_value_heads=heads // 2, vocab_size=vocabulary,
                         max_position_embeddings=sequence, bos_token_id=0, eos_token_id=0)
    return tokens(LlamaForCausalLM(config).to(dtype), batch, sequence, vocabulary)


CASES = [(make, sizes, dtype) for dtype in (torch.float32, torch.float64)
         for make, sizes in [*((attention, (n, 2, 24)) for n in (1, 33, 191, 192, 600, 767, 768, 1000)),
                             (gpt2, (2, 64, 128, 4, 512)), (gpt2, (3, 50, 96, 4, 100)), (gpt2, (1, 256, 768, 12, 5000)),
                             (others, ()), (llama, (2, 64, 128, 4, 512)), (llama, (3, 50, 96, 4, 100))]]


def measure(module, batch, loss):
    model = partita.capture(module, batch, loss)
    values = {**dict(module.named_parameters()), **dict(module.named_buffers()), **model.constants}
    ops = {op["name"]: op for op in model.ops}

    def dtype(tensor):
        return getattr(torch, tensor["dtype"])

    for name, _, found, *_ in library().workspace(model.to_json(), values, batch):
        op = ops[name]
        inputs = [model.tensors[int(a[1:])] for a in op["args"] if isinstance(a, str) and a.startswith("%")]
        out = model.tensors[op["out"][0]]
        yield Call(op["target"], [t["shape"] for t in inputs], [dtype(t) for t in inputs], out["shape"], dtype(out), found)


def main():
    torch.set_num_threads(1)
    rows, none, wrong = {}, set(), 0
    for make, sizes, dtype in CASES:
        for call in measure(*make(*sizes, dtype)):
            expected = FORMULAS[call.target](call) if call.target in FORMULAS else 0
            if call.found != expected:
                print(f"WRONG {call.target} {call.shapes}: {call.found} bytes, the formula says {expected}")
                wrong += 1
            if call.found:
                rows[call.target, str(call.shapes[:3])[1:-1], call.size] = call.found
            else:
                none.add(call.target)
    table = ["| op | first inputs | bytes of an element | hidden bytes |", "|---|---|---|---|"]
    table += [f"| `{target.removeprefix('aten.')}` | {shapes} | {size} | {found} |" for (target, shapes, size), found in sorted(rows.items())]
    table += ["", "None at all: " + ", ".join(f"`{t.removeprefix('aten.')}`" for t in sorted(none - FORMULAS.keys())) + ".", ""]
    print("\n".join(table))
    if "--write" in sys.argv:
        PAGE.write_text(PAGE.read_text().split(BEGIN)[0] + BEGIN + "\n" + "\n".join(table))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
