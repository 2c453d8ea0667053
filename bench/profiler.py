"""Profiling beside PyTorch's own trackers under fake tensors, in CPU seconds of the whole process.

    python bench/profiler.py [--layers N]

MemTracker and FlopCounterMode run an eager step of the module on fake tensors. Ours: capture once, then `partita profile` on
the file; and `partita profile` on the preset, which needs no capture. Both ratios are printed.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))

import torch
from torch._subclasses import FakeTensorMode
from torch.utils.flop_counter import FlopCounterMode
from transformers import LlamaConfig, LlamaForCausalLM

import partita

COMMAND = ROOT / "build/full/bin/partita"
RUNS = 5


def llama(layers):
    config = LlamaConfig(num_hidden_layers=layers, hidden_size=4096, intermediate_size=14336, num_attention_heads=32,
                         num_key_value_heads=8, vocab_size=128256, use_cache=False)
    ids = torch.zeros(1, 4096, dtype=torch.int64)
    return LlamaForCausalLM(config), {"input_ids": ids, "labels": ids}


def step(module, batch):
    module(**batch).loss.backward()


def flops(module, batch):
    with FlopCounterMode(display=False):
        step(module, batch)


def memory(module, batch):
    from torch.distributed._tools.mem_tracker import MemTracker

    tracker = MemTracker()
    tracker.track_external(module)
    with tracker:
        step(module, batch)


def cpu(call, *args):
    begin = time.process_time()
    call(*args)
    return time.process_time() - begin


# A small process in between: a child's largest size counts what its parent had when it was made.
SMALL = """import json, os, resource, sys
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ)
_, status, used = os.wait4(child, 0)
print(json.dumps([used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]), file=sys.stderr)
sys.exit(os.waitstatus_to_exitcode(status))"""


def profile(model, *flags):
    """CPU seconds of the command, megabytes, and seconds of it that profiling took after loading; the least of RUNS."""
    runs = []
    for _ in range(RUNS):
        run = subprocess.run([sys.executable, "-S", "-c", SMALL, COMMAND, "profile", model, *flags, "--json"], check=True,
                             capture_output=True, text=True)
        runs.append((*json.loads(run.stderr), json.loads(run.stdout)["seconds_to_profile"]))
    return [min(column) for column in zip(*runs)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=32)
    options = parser.parse_args()
    with FakeTensorMode(), tempfile.TemporaryDirectory() as folder:
        module, batch = llama(options.layers)
        theirs = {"FlopCounterMode": cpu(flops, module, batch), "MemTracker": cpu(memory, module, batch)}
        module.zero_grad()
        path = Path(folder) / "llama.model.json"
        capture = cpu(lambda: partita.capture(module, batch).save(path))
        whole, megabytes, inside = profile(path)
    print(f"Llama-3 8B with {options.layers} layers, batch 1, sequence 4096; CPU seconds")
    print(f"capture {capture:.2f}, command on the file {whole:.3f} ({inside:.4f} s after loading), {megabytes:.0f} MB")
    for name, seconds in theirs.items():
        print(f"{name}: {seconds:.2f}; {seconds / (capture + whole):.2f} x ours with capture, {seconds / whole:.0f} x without")
    for preset in ("gpt3-175b", "llama-3.1-405b", "llama-3-8b"):
        whole, megabytes, inside = profile(preset, "--dtype", "bf16")
        print(f"{preset}: {whole:.3f} ({inside:.4f} s after building), {megabytes:.0f} MB")


if __name__ == "__main__":
    main()
