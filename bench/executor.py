"""Partita's executor over eager PyTorch: a step, the optimizer, peak bytes. One thread each, interleaved, medians.

What is compared: the same kernels on the same threads, equal bits. The executor saves Python, autograd and dispatch, and
keeps large blocks from step to step, where eager returns them to the system and touches fresh pages.

    python bench/executor.py [--json]      exits 1 when a ratio is above its limit
"""

import json
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))

import torch
from transformers import GPT2Config, GPT2LMHeadModel

import partita
from partita.native import library

# name -> (layers, hidden, heads, vocabulary, batch, sequence, rounds, limit of the ratio or None)
SIZES = {
    "gpt2-124m, batch 2": (12, 768, 12, 50257, 2, 256, 7, 1.0),
    "tiny, batch 1": (4, 128, 4, 512, 1, 64, 300, 0.6),
    "tiny, batch 2": (4, 128, 4, 512, 2, 64, 200, None),
    "trivial, batch 1": (1, 8, 2, 16, 1, 4, 1000, 0.2),
}


def build(layers, hidden, heads, vocabulary, batch, sequence):
    torch.manual_seed(0)
    module = GPT2LMHeadModel(GPT2Config(n_layer=layers, n_embd=hidden, n_head=heads, vocab_size=vocabulary,
                                        n_positions=sequence, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0,
                                        bos_token_id=0, eos_token_id=0))
    ids = torch.randint(0, vocabulary, (batch, sequence))
    return module, {"input_ids": ids, "labels": ids}


def timed(call):
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def open_session(module, model, **how):
    values = {**dict(module.named_parameters()), **dict(module.named_buffers()), **model.constants}
    return library().Session(model.to_json(), values, threads=1, **how)


def interleaved(theirs, ours, rounds, limit):
    """Both give seconds; each round runs one after the other."""
    for call in (theirs, ours, theirs, ours):
        call()
    pairs = [(theirs(), ours()) for _ in range(rounds)]
    ratios = sorted(b / a for a, b in pairs)
    ratio = statistics.median(ratios)
    return {"eager": statistics.median(a for a, _ in pairs), "executor": statistics.median(b for _, b in pairs),
            "ratio": ratio, "ratio_quartiles": [ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]],
            "rounds": rounds, "limit": limit, "ok": limit is None or ratio <= limit}


def steps(layers, hidden, heads, vocabulary, batch, sequence, rounds, limit):
    """Forward and backward, in seconds."""
    module, tokens = build(layers, hidden, heads, vocabulary, batch, sequence)
    session = open_session(module, partita.capture(module, tokens))

    def eager():
        module.zero_grad(set_to_none=True)
        module(**tokens).loss.backward()

    return interleaved(lambda: timed(eager), lambda: timed(lambda: session.step(tokens)), rounds, limit)


def optimizer_step(rounds=9, limit=1.0):
    """AdamW alone, in seconds, on the parameters of a GPT-2 of 33 million."""
    module, tokens = build(8, 512, 8, 16384, 1, 16)
    adamw = {"name": "adamw", "lr": 1e-3, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.01}
    session = open_session(module, partita.capture(module, tokens), optimizer=adamw)
    fused = torch.optim.AdamW(module.parameters(), lr=1e-3, weight_decay=0.01, fused=True)

    def eager():
        module.zero_grad(set_to_none=True)
        module(**tokens).loss.backward()
        return timed(fused.step)

    return interleaved(eager, lambda: session.optimizer_seconds(tokens), rounds, limit)


def peak_bytes(limit=1.0):
    """Everything held at once in forward and backward: parameters, batch, activations, gradients, workspace."""
    module, tokens = build(12, 768, 12, 50257, 2, 256)
    model = partita.capture(module, tokens)
    there = sum(t.nbytes for t in [*module.parameters(), *module.buffers(), *tokens.values()])
    module(**tokens).loss.backward()
    module.zero_grad(set_to_none=True)
    eager = there + library().peak_of(lambda: module(**tokens).loss.backward())
    session = open_session(module, model)
    session.step(tokens)
    ours = session.peak_bytes()[0]
    return {"eager": eager, "executor": ours, "ratio": ours / eager, "limit": limit, "ok": ours <= limit * eager}


def line(name, r, unit, scale):
    low, high = r.get("ratio_quartiles", (r["ratio"], r["ratio"]))
    return (f"{name:<34}{r['eager'] * scale:>9.2f} {unit:<3}{r['executor'] * scale:>9.2f} {unit:<3}"
            f"{r['ratio']:>8.3f}{f'{low:.3f}..{high:.3f}':>16}{r['limit'] or '-':>8}")


def main():
    torch.set_num_threads(1)
    answer = {f"step: {name}": steps(*size) for name, size in SIZES.items()}
    answer["optimizer step: AdamW(fused=True)"] = optimizer_step()
    answer["peak bytes: gpt2-124m, batch 2"] = peak_bytes()
    if "--json" in sys.argv:
        print(json.dumps(answer, indent=2))
    else:
        print(f"{'':<34}{'eager':>13}{'executor':>13}{'ratio':>8}{'quartiles':>16}{'limit':>8}")
        for name, r in answer.items():
            print(line(name, r, *(("MiB", 2**-20) if name.startswith("peak") else ("ms", 1e3))))
    return 0 if all(r["ok"] for r in answer.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
