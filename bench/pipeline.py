"""Partita's pipeline runtime beside torch.distributed.pipelining, on this machine and in this run.

Ours: every rank a thread of one process; messages are copies in memory. Theirs: every rank a process, messages over Gloo
on the loopback. The transports differ, and that is part of what is compared. Both: one thread a rank, the schedules that
both have, the peer's fastest one counts, fused AdamW, medians.

    python bench/pipeline.py [cost] [sleep] [gpt] [queues] [--rounds N]      a table a part; exits 1 when a limit is missed

Wall time: run it on a quiet machine. Sleeping parts suffer less from neighbours with `nice -n -5`.
"""

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TREE = Path(os.environ.get("PARTITA_LIBRARY_DIR", ROOT / "build/full/lib")).parent
PARTITA, LOOP = TREE / "bin/partita", TREE / "bin/loop_campaign"

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.distributed import pipelining

UNIT = 0.005  # seconds of a sleeping stage forward; backward takes twice that
LAYERS, HIDDEN, HEADS, SEQUENCE, VOCABULARY, MICROBATCHES = 4, 256, 4, 128, 512, 8


# ---- theirs -------------------------------------------------------------------------------------------------------------

class Sleep(torch.autograd.Function):
    """Identity that takes `seconds` forward and twice that backward."""

    @staticmethod
    def forward(ctx, x, weight, seconds):
        ctx.seconds = seconds
        if seconds:
            time.sleep(seconds)
        return x + weight

    @staticmethod
    def backward(ctx, grad):
        if ctx.seconds:
            time.sleep(2 * ctx.seconds)
        return grad.contiguous(), grad.sum(), None


class Stage(torch.nn.Module):
    def __init__(self, seconds):
        super().__init__()
        self.weight, self.seconds = torch.nn.Parameter(torch.zeros(())), seconds

    def forward(self, x):
        return Sleep.apply(x, self.weight, self.seconds)


class FirstHalf(torch.nn.Module):
    def __init__(self, gpt):
        super().__init__()
        self.wte, self.wpe, self.blocks = gpt.transformer.wte, gpt.transformer.wpe, gpt.transformer.h[:LAYERS // 2]

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = first(block(x))
        return x


class SecondHalf(torch.nn.Module):
    def __init__(self, gpt):
        super().__init__()
        self.blocks, self.norm = gpt.transformer.h[LAYERS // 2:], gpt.transformer.ln_f
        self.head = torch.nn.Linear(HIDDEN, VOCABULARY, bias=False)

    def forward(self, x):
        for block in self.blocks:
            x = first(block(x))
        return self.head(self.norm(x))


def first(out):
    return out[0] if isinstance(out, tuple) else out


def gpt():
    from transformers import GPT2Config, GPT2LMHeadModel
    torch.manual_seed(0)
    return GPT2LMHeadModel(GPT2Config(n_layer=LAYERS, n_embd=HIDDEN, n_head=HEADS, vocab_size=VOCABULARY, n_positions=SEQUENCE,
                                      resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, bos_token_id=0, eos_token_id=0))


def token_loss(logits, labels):
    return torch.nn.functional.cross_entropy(logits[:, :-1].reshape(-1, VOCABULARY), labels[:, 1:].reshape(-1))


def worker(rank, ranks, store, what, schedule, rounds, out):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=ranks)
    chunks = 2 if schedule in ("ScheduleInterleaved1F1B", "ScheduleLoopedBFS") else 1
    count = ranks * chunks
    if what == "gpt":
        model = gpt()
        modules = [FirstHalf(model) if rank == 0 else SecondHalf(model)]
        data = torch.randint(0, VOCABULARY, (MICROBATCHES, SEQUENCE))
        loss = token_loss
    else:
        modules = [Stage(UNIT if what == "sleep" else 0) for _ in range(chunks)]
        data = torch.zeros(MICROBATCHES, 16, requires_grad=False)
        loss = lambda output, target: (output - target).sum()
    stages = [pipelining.PipelineStage(module, rank + k * ranks, count, torch.device("cpu"))
              for k, module in enumerate(modules)]
    kind = getattr(pipelining, schedule)
    run = kind(stages if chunks > 1 else stages[0], MICROBATCHES, loss_fn=loss)
    parameters = [p for module in modules for p in module.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=1e-4, fused=True)
    times = []
    for _ in range(rounds + 3):
        dist.barrier()
        begin = time.perf_counter()
        args = (data,) if rank == 0 else ()
        run.step(*args, **({"target": data, "losses": []} if rank == ranks - 1 else {}))
        if what == "gpt":
            optimizer.step()
            optimizer.zero_grad(set_to_none=False)
        dist.barrier()
        times.append(time.perf_counter() - begin)
    if rank == 0:
        Path(out).write_text(json.dumps(times[3:]))
    dist.destroy_process_group()


def theirs(what, ranks, schedule, rounds):
    """Median seconds of a step."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out")
        mp.spawn(worker, (ranks, os.path.join(folder, "store"), what, schedule, rounds, out), nprocs=ranks)
        return statistics.median(json.loads(Path(out).read_text()))


# ---- ours ---------------------------------------------------------------------------------------------------------------

def loop(*words):
    return subprocess.run([LOOP, *map(str, words)], capture_output=True, text=True, check=True).stdout


def partita(*words):
    done = subprocess.run([PARTITA, *map(str, words), "--json"], capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def row(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def verdict(name, value, limit):
    row(name, f"{value:.3f}", f"<= {limit}", "yes" if value <= limit else "NO")
    return value <= limit


# ---- the parts ----------------------------------------------------------------------------------------------------------

def cost(rounds):
    """Nothing to compute: what is left is the runtime."""
    own = loop("cost", 100000)
    compute, receive, send = (float(re.search(f"{word} (?:with its copy of 64 bytes )?([0-9.]+) us", own)[1])
                              for word in ("compute", "post receive", "send"))
    pipelines = dict(re.findall(r"^(\S+) +([0-9.]+) us per compute action", loop("pipeline", 2, MICROBATCHES, 300), re.M))
    peers = {name: 1e6 * theirs("nothing", 2, name, rounds) / (2 * MICROBATCHES) for name in ("ScheduleGPipe", "Schedule1F1B")}
    row("no-op actions", "us"), row("---", "---")
    row("ours, own time of a compute action", compute), row("ours, post of a receive", receive)
    row("ours, post of a send with its copy", send)
    for name in ("gpipe", "1f1b"):
        row(f"ours, two threads, {name}: step over compute actions", pipelines[name])
    for name, value in peers.items():
        row(f"theirs, two processes, {name}: step over compute actions", f"{value:.1f}")
    print()
    ratio = min(peers.values()) / min(float(pipelines[name]) for name in ("gpipe", "1f1b"))
    row("limit", "value", "must be", "met"), row("---", "---", "---", "---")
    held = [verdict("own us per compute action", compute, 2), verdict("own us per transfer post", max(receive, send), 5),
            verdict("ours over theirs, whole steps of no-ops", 1 / ratio, 0.1)]
    return all(held)


def sleep(rounds):
    """Stages that sleep 5 ms forward and 10 ms backward on four ranks."""
    table = loop("emulated", 4, MICROBATCHES, rounds)
    ours = {name: (float(ms), float(ratio)) for name, ms, ratio in
            re.findall(r"^(\S+) +simulated +([0-9.]+) ms +ratio ([0-9.]+)", table, re.M)}
    row("sleeping stages, P = 4, 8 micro-batches", "ideal ms", "ours", "theirs"), row("---", "---", "---", "---")
    pairs = {"gpipe": "ScheduleGPipe", "1f1b": "Schedule1F1B", "interleaved": "ScheduleInterleaved1F1B",
             "looped-bfs": "ScheduleLoopedBFS"}
    for name, (ideal, ratio) in ours.items():
        other = f"{1e3 * theirs('sleep', 4, pairs[name], rounds) / ideal:.3f}" if name in pairs else "-"
        row(name, ideal, f"{ratio:.3f}", other)
    print()
    row("limit", "value", "must be", "met"), row("---", "---", "---", "---")
    return verdict("ours over ideal, median of the schedules", statistics.median(r for _, r in ours.values()), 1.03)


def eager(rounds):
    """One process, two threads, the same micro-batches one after another."""
    torch.set_num_threads(2)
    model = gpt()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    data = torch.randint(0, VOCABULARY, (MICROBATCHES, SEQUENCE))
    times = []
    for _ in range(rounds + 3):
        begin = time.perf_counter()
        for ids in data.split(1):
            (model(input_ids=ids, labels=ids).loss / MICROBATCHES).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        times.append(time.perf_counter() - begin)
    return statistics.median(times[3:])


def real(rounds):
    """A GPT that computes: 4 layers, hidden 256, sequence 128, vocabulary 512, micro-batches of one sequence."""
    with tempfile.TemporaryDirectory() as folder:
        config, model, plan = (os.path.join(folder, name) for name in ("config.json", "x.model.json", "plan.json"))
        Path(config).write_text(json.dumps({"model_type": "gpt2", "n_layer": LAYERS, "n_embd": HIDDEN, "n_head": HEADS,
                                            "vocab_size": VOCABULARY, "n_positions": SEQUENCE}))
        partita("models", config, "--batch", MICROBATCHES, "--seq", SEQUENCE, "-o", model)
        ours = {}
        row("a real GPT, P = 2, one thread a rank", "ms a step"), row("---", "---")
        for schedule in ("1f1b", "gpipe", "zb-h1"):
            partita("recipe", "pipeline", model, "--ranks", 2, "--pp", 2, "--microbatches", MICROBATCHES, "--schedule",
                    schedule, "-o", plan)
            steps = partita("train", model, plan, "--steps", rounds + 3)["steps"][3:]
            ours[schedule] = statistics.median(step["seconds"] for step in steps)
            row(f"ours, {schedule}, AdamW, tied head", f"{1e3 * ours[schedule]:.1f}")
    peers = {}
    for name in ("ScheduleGPipe", "Schedule1F1B"):
        peers[name] = theirs("gpt", 2, name, rounds)
        row(f"theirs, {name}, fused AdamW, head not tied", f"{1e3 * peers[name]:.1f}")
    alone = eager(rounds)
    row("eager, one process, two threads, fused AdamW", f"{1e3 * alone:.1f}")
    print()
    best = min(ours.values())
    row("limit", "value", "must be", "met"), row("---", "---", "---", "---")
    held = [verdict("ours over their best", best / min(peers.values()), 0.8), verdict("ours over eager", best / alone, 1.0)]
    return all(held)


def queues(rounds):
    """Interleaved, P = 8, two chunks a device, a message takes a twentieth of a forward."""
    table = loop("queues", rounds)
    print(table)
    ours, single = (float(value) for value in re.findall(r"over the ideal ([0-9.]+)", table))
    row("limit", "value", "must be", "met"), row("---", "---", "---", "---")
    held = verdict("own channels over the ideal", ours, 1.02)
    row("one queue a device over the ideal", f"{single:.3f}", "shows its loss", "yes" if single > ours else "NO")
    return held and single > ours


PARTS = {"cost": cost, "sleep": sleep, "gpt": real, "queues": queues}


def main():
    words = sys.argv[1:]
    rounds = int(words[words.index("--rounds") + 1]) if "--rounds" in words else 20
    wanted = [word for word in words if word in PARTS] or list(PARTS)
    held = True
    for name in wanted:
        held = PARTS[name](rounds) and held
        print(flush=True)
    sys.exit(0 if held else 1)


if __name__ == "__main__":
    main()
