"""What pieces save in memory, and what they cost in time: head and loss in pieces of the tokens, co-shard, slices.

Bytes above the parameters, counted by the allocator in eager PyTorch and in ours, beside what `partita lower` predicts.
"holds": the caller keeps the output (logits) while backward runs; "drops": only the loss is kept. One thread each,
interleaved, medians of CPU seconds.

    python bench/lean.py [--json] [tokens] [coshard] [slices]     exits 1 when a line misses its limit
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))

import torch
from transformers import GPT2Config, GPT2LMHeadModel

import partita
from partita.native import library

COMMAND = str(ROOT / "build/full/bin/partita") if (ROOT / "build/full/bin/partita").exists() else str(ROOT / "build/bin/partita")

# layers, hidden, heads, vocabulary, batch, sequence, pieces, least cut, rounds
TOKENS = {
    "gpt2-124m, batch 2 x 256": (12, 768, 12, 50257, 2, 256, 8, 0.15, 7),
    "hidden 128, 4 layers, batch 2 x 64": (4, 128, 4, 50257, 2, 64, 4, 0.50, 40),
}
TIME = 1.05


def command(*words):
    done = subprocess.run([COMMAND, *map(str, words), "--json"], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout)


class Lean:
    """One model under one recipe: its session, and the bytes predicted for it."""

    def __init__(self, folder, model, weights, recipe):
        path, plan = Path(folder) / "m.model.json", Path(folder) / "plan.json"
        if not path.exists():
            model.save(path)
        command("recipe", recipe[0], path, *recipe[1:], "--optimizer", "none", "-o", plan)
        self.predicted = command("lower", path, plan)["peak_bytes"]
        self.session = library().Session(model.to_json(), weights, plan.read_text(), threads=1)


def cpu_seconds(call):
    begin = time.process_time()
    call()
    return time.process_time() - begin


def medians(rounds, *calls):
    for call in calls * 2:
        call()
    seconds = [[cpu_seconds(call) for call in calls] for _ in range(rounds)]
    return [statistics.median(column) for column in zip(*seconds)]


def tokens(layers, hidden, heads, vocabulary, batch, sequence, pieces, least, rounds):
    torch.manual_seed(0)
    module = GPT2LMHeadModel(GPT2Config(n_layer=layers, n_embd=hidden, n_head=heads, vocab_size=vocabulary,
                                        n_positions=sequence, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0,
                                        bos_token_id=0, eos_token_id=0))
    ids = torch.randint(0, vocabulary, (batch, sequence))
    data = {"input_ids": ids, "labels": ids}

    def drops():
        module.zero_grad(set_to_none=True)
        module(**data).loss.backward()

    def holds():
        module.zero_grad(set_to_none=True)
        output = module(**data)
        output.loss.backward()

    drops()
    peaks = {}
    for call in (holds, drops):
        module.zero_grad(set_to_none=True)
        peaks[call.__name__] = library().peak_of(call)
    module.zero_grad(set_to_none=True)
    model = partita.capture(module, data)
    weights = {**dict(module.named_parameters()), **dict(module.named_buffers()), **model.constants}
    there = sum(p.nbytes for p in module.parameters())
    with tempfile.TemporaryDirectory() as folder:
        ours = Lean(folder, model, weights, ["loss-pieces", "--ranks", 1, "--loss-pieces", pieces])
        ours.session.step(data)
        eager, pieced = medians(rounds, drops, lambda: ours.session.step(data))
    measured = ours.session.peak_bytes()[0]
    cut = 1 - (measured - there) / peaks["holds"]
    return {"eager holds": peaks["holds"], "eager drops": peaks["drops"], "in pieces": measured - there, "cut": cut,
            "cut against drops": 1 - (measured - there) / peaks["drops"], "least": least,
            "predicted": ours.predicted[0] - there, "time": pieced / eager,
            "ok": cut >= least and measured == ours.predicted[0] and pieced <= TIME * eager}


def main():
    torch.set_num_threads(1)
    wanted = [word for word in sys.argv[1:] if not word.startswith("-")]
    answer = {}
    if not wanted or "tokens" in wanted:
        answer |= {f"head and loss in pieces, {name}": tokens(*size) for name, size in TOKENS.items()}
    if "--json" in sys.argv:
        print(json.dumps(answer, indent=2))
    else:
        for name, values in answer.items():
            print(name)
            for key, value in values.items():
                shown = f"{value / 1e6:.1f} MB ({value} bytes)" if isinstance(value, int) and value > 1 else value
                print(f"    {key}: {shown if not isinstance(value, float) else round(value, 3)}")
    return 0 if all(values["ok"] for values in answer.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
