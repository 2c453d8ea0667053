"""What pieces save in memory, and what they cost in time: head and loss in pieces of the tokens, co-shard, slices.

Bytes above the parameters, counted by the allocator in eager PyTorch and in ours, beside what `partita lower` predicts.
"holds": the caller keeps the output (logits) while backward runs; "drops": only the loss is kept. One thread each, in
turns, the median over the turns of the ratio of CPU seconds; every line in a process of its own, since what one model
leaves in the C library's heap decides how often eager PyTorch asks the kernel for pages in the next.

    python bench/lean.py [--json] [gpt2] [hidden128] [coshard] [slices]     exits 1 when a line misses its limit
"""

import itertools
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from time import process_time

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))

import torch
from executor import build as gpt2

import partita
from partita.native import library

COMMAND = str(ROOT / "build/full/bin/partita") if (ROOT / "build/full/bin/partita").exists() else str(ROOT / "build/bin/partita")

# layers, hidden, heads, vocabulary, batch, sequence, pieces, least cut, rounds
GPT2 = (12, 768, 12, 50257, 2, 256, 8, 0.15, 7)
HIDDEN128 = (4, 128, 4, 50257, 2, 64, 4, 0.50, 40)
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
        self.predicted = command("lower", path, plan, "--dump-dir", folder)["peak_bytes"]
        self.program = lowered_program(folder)
        self.session = library().Session(model.to_json(), weights, plan.read_text(), threads=1)


def lowered_program(folder):
    """The Program among the files of --dump-dir: as many come before it as there are passes."""
    (path,) = Path(folder).glob("*-program.json")
    return json.loads(path.read_text())


WIDTH = {"float64": 8, "float32": 4, "int64": 8, "int32": 4, "bool": 1, "bfloat16": 2, "float16": 2}
IN_PLACE = {"all_reduce", "add", "scale", "squares", "clip", "optimize", "move"}


def moments(program):
    """What rank 0 holds after every instruction, before anything dies: lists of (bytes, shape, what made it)."""
    rank, held, names, numbers = program["ranks"][0], {}, {}, itertools.count()
    key = lambda slot, microbatch: (slot, microbatch if slot[0] == "f" else 0)

    def make(name, number, what):
        dtype, shape, _ = program["types"][number]
        size = WIDTH[dtype]
        for length in shape:
            size *= length
        names[name] = next(numbers)
        held[names[name]] = (size, shape, what)

    def drop(name):
        storage = names.pop(name)
        if storage not in names.values():
            del held[storage]

    for load in rank["loads"]:
        make(key(load["slot"], load.get("microbatch", 0)), load["type"], "load")
    for action in rank["actions"]:
        if action[0] == "free":
            drop(key(action[1], action[2]))
        for instr in program["bodies"][action[1]]["instrs"] if action[0] == "run" else []:
            into = instr.get("into", 0 if instr["do"] in IN_PLACE or instr.get("view") else None)
            for at, slot in enumerate(instr["out"]):
                if slot is None:
                    continue
                if into is not None:
                    names[key(slot, action[2])] = names[key(instr["in"][into], action[2])]
                else:
                    make(key(slot, action[2]), instr["types"][at], instr["do"])
            yield list(held.values())
            for slot in instr.get("drop", []):
                drop(key(slot, action[2]))


def cpu_seconds(call):
    begin = process_time()
    call()
    return process_time() - begin


def ratio_of(rounds, first, second):
    """Of the second call's CPU seconds to the first's: the median over turns, since a machine's speed changes between them."""
    for call in (first, second) * 2:
        call()
    ratios = []
    for turn in range(rounds):
        seconds = {call: cpu_seconds(call) for call in ((second, first) if turn % 2 else (first, second))}
        ratios.append(seconds[second] / seconds[first])
    return statistics.median(ratios)


def weights_of(module, model):
    return {**dict(module.named_parameters()), **dict(module.named_buffers()), **model.constants}


def tokens(layers, hidden, heads, vocabulary, batch, sequence, pieces, least, rounds):
    module, data = gpt2(layers, hidden, heads, vocabulary, batch, sequence)

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
    there = sum(p.nbytes for p in module.parameters())
    with tempfile.TemporaryDirectory() as folder:
        ours = Lean(folder, model, weights_of(module, model), ["loss-pieces", "--ranks", 1, "--loss-pieces", pieces])
        ours.session.step(data)
        time = ratio_of(rounds, drops, lambda: ours.session.step(data))
    measured = ours.session.peak_bytes()[0]
    cut = 1 - (measured - there) / peaks["holds"]
    return {"eager holds": peaks["holds"], "eager drops": peaks["drops"], "in pieces": measured - there, "cut": cut,
            "cut against drops": 1 - (measured - there) / peaks["drops"], "least": least,
            "predicted": ours.predicted[0] - there, "time": time,
            "ok": cut >= least and measured == ours.predicted[0] and time <= TIME}


# A vision transformer with shifted windows whose windows are large: scores are most of what it holds.
WINDOWS = dict(image_size=112, patch_size=4, window_size=28, embed_dim=96, depths=[2], num_heads=[8], num_labels=100)
LEAST_SCORES, MOST_LEFT = 0.7, 0.5


def coshard(pieces=8, batch=2):
    side = (WINDOWS["image_size"] // WINDOWS["patch_size"]) ** 2
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.json"
        config.write_text(json.dumps({"model_type": "swin", **WINDOWS}))
        saved = Path(folder) / "m.model.json"
        command("models", config, "--batch", batch, "-o", saved)
        peaks, share, measured, errors = {}, 0, {}, {}
        for name, recipe in {"whole": ["dp"], "co-shard": ["coshard", "--pieces", pieces]}.items():
            plan = Path(folder) / f"{name}.json"
            command("recipe", recipe[0], saved, "--ranks", 1, *recipe[1:], "--optimizer", "none", "-o", plan)
            peaks[name] = command("lower", saved, plan, "--dump-dir", folder)["peak_bytes"][0]
            run = command("verify", saved, plan)
            measured[name], errors[name] = run["measured_peak_bytes"][0], run["max_grad_error"]
            if name == "whole":
                program = lowered_program(folder)
                peak = max(moments(program), key=lambda held: sum(size for size, _, _ in held))
                scores = sum(size for size, shape, _ in peak if shape[-2:] == [side, side] and shape[:-2] != [])
                share = scores / peaks[name]
    left = peaks["co-shard"] / peaks["whole"]
    return {"whole": peaks["whole"], "scores of it": share, "co-shard": peaks["co-shard"], "left": left,
            "predicted to the byte": measured == peaks, "gradient error": errors["co-shard"],
            "ok": share >= LEAST_SCORES and left < MOST_LEFT and measured == peaks}


# layers, hidden, heads, vocabulary, batch, sequence, ranks, parameters in pieces, slices, rounds
SLICES = (2, 512, 8, 1024, 8, 128, 2, "*.mlp.*.weight", 4, 25)


def slices(layers, hidden, heads, vocabulary, batch, sequence, ranks, pattern, count, rounds):
    """Data parallel with some weights in pieces: gathered whole, and slice by slice."""
    module, data = gpt2(layers, hidden, heads, vocabulary, batch, sequence)
    model = partita.capture(module, data)
    ways = {}
    for cut in (1, count):
        with tempfile.TemporaryDirectory() as folder:
            ways[cut] = Lean(folder, model, weights_of(module, model),
                             ["osdp", "--ranks", ranks, "--zdp", pattern, "--slices", cut])
    time = ratio_of(rounds, *[lambda way=way: way.session.step(data) for way in ways.values()])
    transient = {cut: max(sum(size for size, _, what in held if what == "all_gather") for held in moments(way.program))
                 for cut, way in ways.items()}
    exact = all(way.session.peak_bytes() == way.predicted for way in ways.values())
    whole, sliced = (way.session.gradients() for way in ways.values())
    error = max(float((whole[name] - sliced[name]).abs().max() / whole[name].abs().max()) for name in whole)
    return {"gathered whole": transient[1], f"in {count} slices": transient[count], "share": transient[count] / transient[1],
            "peak whole": max(ways[1].predicted), "peak sliced": max(ways[count].predicted), "predicted to the byte": exact,
            "gradient error": error, "time": time,
            "ok": exact and error < 1e-4 and transient[count] * count <= transient[1] and time <= TIME}


LINES = {
    "gpt2": ("head and loss in pieces, gpt2-124m, batch 2 x 256", lambda: tokens(*GPT2)),
    "hidden128": ("head and loss in pieces, hidden 128, 4 layers, batch 2 x 64", lambda: tokens(*HIDDEN128)),
    "coshard": ("co-shard with recompute, windows of 28 x 28", coshard),
    "slices": ("OSDP, weights of MLPs in pieces, 4 slices", lambda: slices(*SLICES)),
}


def apart(line):
    """A line in a new process."""
    done = subprocess.run([sys.executable, __file__, "--json", line], stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)


def show(answer):
    for name, values in answer.items():
        print(name)
        for key, value in values.items():
            shown = f"{value / 1e6:.1f} MB ({value} bytes)" if isinstance(value, int) and value > 1 else value
            print(f"    {key}: {shown if not isinstance(value, float) else f'{value:.3g}'}")


def main():
    torch.set_num_threads(1)
    wanted = [word for word in sys.argv[1:] if not word.startswith("-")] or list(LINES)
    if unknown := set(wanted) - set(LINES):
        raise SystemExit(f"unknown: {', '.join(sorted(unknown))}; known are {', '.join(LINES)}")
    answer = {}
    for line in wanted:
        name, measure = LINES[line]
        answer |= {name: measure()} if len(wanted) == 1 else apart(line)
    if "--json" in sys.argv:
        print(json.dumps(answer, indent=2))
    else:
        show(answer)
    return 0 if all(values["ok"] for values in answer.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
