"""Answers to the rows of profile_cases.csv from graphs, by the command. What cannot be answered says why."""

import csv
import functools
import json
import re
import subprocess
import tempfile
from pathlib import Path

import torch
from torch._subclasses import FakeTensorMode

import partita

from .nets import NETS, megatron_layers

FILE = Path(__file__).resolve().parents[2] / "data" / "profile_cases.csv"
BATCH = 4  # of image models; the rows about their memory have it

SEVERAL = "needs several devices: tensor, sequence or pipeline parallel shares of memory are the plan's"
MEASURED = "a measured step of several devices: `partita validate` compares those"
NOT_OURS = "a figure of another tool's search, not of a step"
REASONS = {
    **dict.fromkeys(["48", "49", "50", "55", "60", "61", "62", "63", "65", "67", "69"], SEVERAL),
    **dict.fromkeys(["92", "94"], "sharded optimizer states: needs several devices"),
    **dict.fromkeys(["79", "82", "85", "88", "96", "98", "99", "100"], MEASURED),
    "123": NOT_OURS,
    "125": NOT_OURS,
}


QUICK = {"torchvision alexnet", "torchvision resnet34", "Megatron 22B"}  # of those that have to be captured


def is_quick(row):
    """Captures take seconds: most of them are left to the command."""
    captured = row["model"] in NETS or row["quantity"].startswith("activation bytes")
    return not captured or row["model"] in QUICK


def rows():
    with FILE.open() as file:
        return list(csv.DictReader(file))


class Profiler:
    """Profiles by the command; captures each net once."""

    def __init__(self, command):
        self.command, self.folder = str(command), Path(tempfile.mkdtemp())

    @functools.cache
    def profile(self, model, *flags):
        run = subprocess.run([self.command, "profile", str(model), *flags, "--json"], capture_output=True, text=True)
        if run.returncode:
            raise RuntimeError(run.stderr)
        return json.loads(run.stdout)

    def config(self, name, **config):
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(config))
        return path

    @functools.cache
    def net(self, name):
        with FakeTensorMode():
            captured = partita.capture(NETS[name](), (torch.empty(BATCH, 3, 224, 224),), lambda output, batch: output.sum())
        return self.save(captured, name)

    @functools.cache
    def megatron(self, sequence, batch, hidden, heads):
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.bfloat16)
        try:
            with FakeTensorMode():
                x = torch.empty(batch, sequence, hidden)
                captured = partita.capture(megatron_layers(hidden, heads), (x,), lambda output, batch: output.float().sum())
        finally:
            torch.set_default_dtype(before)
        return self.save(captured, f"megatron-{hidden}")

    def save(self, captured, name):
        path = self.folder / f"{name.split()[-1]}.model.json"
        captured.save(path)
        return path


def numbers(config):
    """"L=48 h=6144 s=2048" -> {"L": 48, ...}."""
    return {key: int(value) for key, value in re.findall(r"(\w+)=(\d+)", config)}


def gpt(p, row, **more):
    n = numbers(row["config"])
    positions = n.get("P", n.get("s", 2048))
    return p.config(f"case-{row['id']}", model_type="gpt2", n_layer=n["L"], n_embd=n["h"], n_head=n["h"] // 64,
                    vocab_size=n["V"], n_positions=positions, **more)


def parameters(p, row):
    model = row["model"]
    if model in NETS:
        return p.profile(p.net(model))["params"]
    if model == "torchvision vit_b_16":
        return p.profile("vit-base")["params"]
    if "ff=" not in row["config"]:
        return p.profile(gpt(p, row), "--batch", "1", "--seq", "8")["params"]
    n = numbers(row["config"])
    width = n.get("hd", 128)
    config = p.config(f"case-{row['id']}", model_type="llama", num_hidden_layers=n["L"], hidden_size=n["h"],
                      num_attention_heads=n["h"] // width, num_key_value_heads=n["kv"], head_dim=width,
                      intermediate_size=n["ff"], vocab_size=n["V"], tie_word_embeddings="untied" not in row["config"])
    return p.profile(config, "--batch", "1", "--seq", "8")["params"]


def multiply_adds(p, row):
    profile = p.profile(p.net(row["model"]))
    return profile["flops"]["forward"] / 2 / BATCH / (1e9 if row["unit"] == "GMAC" else 1)


def flops_per_token(p, row):
    sequence = numbers(row["config"])["s"]
    profile = p.profile(gpt(p, row), "--batch", "1", "--seq", str(sequence))
    # Of the five products of attention's backward one computes the scores again: no model FLOPs.
    again = sum(t["flops"] / 5 for t in profile["targets"] if "attention" in t["target"] and "backward" in t["target"])
    return (profile["flops"]["forward"] + profile["flops"]["backward"] - again) / sequence


# Layers, width, devices, batch and measured seconds of a step with sequence parallelism and selective recompute: tables 3 and 5 of
# arXiv 2205.05198, what "the row above" says.
STEPS = {"Megatron 22B": (48, 6144, 8, 4, 1.10), "GPT-3 175B": (96, 12288, 64, 64, 13.75),
         "MT-NLG 530B": (105, 20480, 280, 280, 37.83), "Megatron 1T": (128, 25600, 512, 512, 71.49)}


def utilisation(p, row):
    """Percent of 312 TFLOP/s that the graph's model FLOPs are in the published time."""
    layers, hidden, devices, batch, seconds = STEPS[row["model"]]
    sizes = {**row, "config": f"L={layers} h={hidden} s=2048 V=51200"}
    return 100 * flops_per_token(p, sizes) * batch * 2048 / (seconds * devices * 312e12)


def layer_time(p, row):
    """Milliseconds of one layer's forward for one sequence. The source names no device; 73 % of an A100's peak fits no other."""
    n = {key: int(value) for key, value in re.findall(r"(batch|seq) (\d+)", row["config"])}
    flags = ["--batch", str(n["batch"]), "--seq", str(n["seq"]), "--dtype", "bf16", "--device", "A100-80GB", "--depth", "3"]
    layers = p.profile("llama-2-7b", *flags)["modules"]
    return 1e3 * next(m["phases"]["forward"] for m in layers if m["name"].endswith("layers.0")) / n["batch"]


def training_compute(p, row):
    """The paper leaves attention between tokens out."""
    profile = p.profile("gpt3-175b", "--batch", "1")
    products = sum(target["flops"] for target in profile["targets"] if "attention" not in target["target"])
    return products / 2048 * 300e9


HEADS = {6144: 64, 12288: 96, 20480: 128, 25600: 160}  # by width, table 3 of arXiv 2205.05198


def activations(p, row):
    n = numbers(row["config"])
    model = p.megatron(n["s"], n["b"], n["h"], HEADS[n["h"]])
    recompute = "selective" if "selective" in row["quantity"] else "none"
    profile = p.profile(model, "--recompute", recompute, "--depth", "1")
    return next(module["saved_bytes"] for module in profile["modules"] if module["name"] == "1")


def model_states(p, row):
    """Parameters, gradients and Adam of 7.5e9 parameters: the vocabulary is chosen to give that count."""
    hidden, layers, positions = 4096, 36, 1024
    rest = layers * (12 * hidden**2 + 13 * hidden) + positions * hidden + 2 * hidden
    config = p.config("zero", model_type="gpt2", n_layer=layers, n_embd=hidden, n_head=32, n_positions=positions,
                      vocab_size=(7_500_000_000 - rest) // hidden)
    profile = p.profile(config, "--batch", "1", "--seq", "8", "--dtype", "fp16", "--optimizer", "adamw",
                        "--precision", "master=fp32,state=fp32")
    each = profile["memory"]["bytes_per_parameter"]
    assert each["parameter"] + each["gradient"] + each["master"] + each["optimizer"] == each["total"]
    return profile["params"] * each["total"] / 1e9


def bytes_per_parameter(p, row):
    flags = ["--dtype", "bf16", "--optimizer", "adamw", "--precision", "grad=fp32,master=fp32,state=fp32"]
    return p.profile("gpt2-tiny", *flags)["memory"]["bytes_per_parameter"]["total"]


def attention_count(p, row):
    profile = p.profile("vit-base", "--batch", "8", "--depth", "4")
    return next(m["flops"]["forward"] for m in profile["modules"] if m["name"].endswith("0.attention")) / 2


def forward_memory(p, row):
    """Held when forward ends: parameters and buffers, the batch, what backward needs."""
    profile = p.profile(p.net(row["model"]))
    causes = profile["memory"]["peak_by_cause"]
    # Its MB are MiB: the same table has resnet18's 11689512 parameters as 44.592 MB.
    return (causes["parameters"] + causes["inputs"] + profile["saved_bytes"]) / 2**20


def saved(p, row):
    """These rows count the image too, which the first convolution's gradient needs."""
    profile = p.profile(p.net(row["model"]))
    return profile["saved_bytes"] + profile["memory"]["peak_by_cause"]["inputs"]


# What a row is called -> (how it is answered, relative tolerance). Formulas of activations leave out the statistics of
# norms; a row's own tolerance is kept.
ANSWERS = [
    (r"^parameters$", parameters, 0),
    (r"forward multiply-adds per image", multiply_adds, 0.005),
    (r"model FLOPs per token", flops_per_token, 0.01),
    (r"total training compute", training_compute, 0.01),
    (r"^MFU implied", utilisation, 0.3 / 41.5),
    (r"forward time per sequence", layer_time, 0.15),
    (r"activation bytes per layer", activations, 0.02),
    (r"model-state memory per GPU, baseline", model_states, 0.05 / 120),
    (r"bytes per parameter, no distributed", bytes_per_parameter, 0),
    (r"one self-attention forward count", attention_count, 0.002),
    (r"forward memory", forward_memory, None),
    (r"saved-for-backward bytes", saved, 0),
]


def answer(p, row):
    """(value, relative tolerance); a tolerance of None: at least as near as MAP's estimate, or within 2 %."""
    for pattern, how, tolerance in ANSWERS:
        if re.search(pattern, row["quantity"]):
            if row["tolerance"].startswith("0.1%"):
                tolerance = 0.001
            return how(p, row), tolerance
    raise KeyError(row["quantity"])


def holds(p, row):
    """(value, its text against the published one, does it hold?)"""
    value, tolerance = answer(p, row)
    if tolerance is None:
        estimate, measured = map(float, row["value"].split(" / "))
        return value, f"MAP {estimate / measured - 1:+.1%}, ours {value / measured - 1:+.1%}", \
            abs(value - measured) <= max(abs(estimate - measured), 0.02 * measured)
    want = float(row["value"])
    off = value / want - 1
    return value, "equal" if value == want else f"{off:+.4%}", abs(off) <= tolerance
