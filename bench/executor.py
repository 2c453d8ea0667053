"""Forward and backward by Partita's executor over eager PyTorch: one thread each, interleaved, medians and spread.

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
    "tiny, batch 1": (4, 128, 4, 512, 1, 64, 300, 0.65),
    "tiny, batch 2": (4, 128, 4, 512, 2, 64, 200, None),
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


def compare(layers, hidden, heads, vocabulary, batch, sequence, rounds, limit):
    module, tokens = build(layers, hidden, heads, vocabulary, batch, sequence)
    model = partita.capture(module, tokens)
    values = {**dict(module.named_parameters()), **dict(module.named_buffers()), **model.constants}
    session = library().Session(model.to_json(), values, threads=1)

    def eager():
        module.zero_grad(set_to_none=True)
        module(**tokens).loss.backward()

    def ours():
        session.step(tokens)

    for call in (eager, ours, eager, ours):
        call()
    theirs, mine = [], []
    for _ in range(rounds):
        theirs.append(timed(eager))
        mine.append(timed(ours))
    ratios = sorted(a / b for a, b in zip(mine, theirs))
    ratio = statistics.median(ratios)
    return {"eager_seconds": statistics.median(theirs), "executor_seconds": statistics.median(mine), "ratio": ratio,
            "ratio_quartiles": [ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]], "rounds": rounds,
            "limit": limit, "ok": limit is None or ratio <= limit}


def main():
    torch.set_num_threads(1)
    answer = {name: compare(*size) for name, size in SIZES.items()}
    if "--json" in sys.argv:
        print(json.dumps(answer, indent=2))
    else:
        print(f"{'forward + backward':<20}{'eager':>12}{'executor':>12}{'ratio':>8}{'quartiles':>16}{'limit':>8}")
        for name, r in answer.items():
            low, high = r["ratio_quartiles"]
            print(f"{name:<20}{r['eager_seconds'] * 1e3:>9.2f} ms{r['executor_seconds'] * 1e3:>9.2f} ms"
                  f"{r['ratio']:>8.3f}{f'{low:.3f}..{high:.3f}':>16}{r['limit'] or '-':>8}")
    return 0 if all(r["ok"] for r in answer.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
