"""What capturing Llama-3 8B at sequence 4096 costs, and what loading its file costs.

    python bench/capture.py [--layers 32] [--sequence 4096]

No weights are made: the module is built under FakeTensorMode. CPU seconds and peak memory are those of a process of its
own, so that nothing imported before counts. Targets: 25 CPU seconds, 1 GB, 0.1 s to load.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python"))


def trace(layers, sequence, path):
    """Captures in this process; prints what it cost as JSON."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensorMode
    from transformers import LlamaConfig, LlamaForCausalLM

    import partita

    imported = _cpu_seconds()
    config = LlamaConfig(hidden_size=4096, intermediate_size=14336, num_hidden_layers=layers, num_attention_heads=32,
                         num_key_value_heads=8, vocab_size=128256, max_position_embeddings=8192, bos_token_id=0,
                         eos_token_id=0)
    with FakeTensorMode(allow_non_fake_inputs=True):
        module = LlamaForCausalLM(config)
        ids = torch.zeros(1, sequence, dtype=torch.int64)
    built = _cpu_seconds()
    model = partita.capture(module, {"input_ids": ids, "labels": ids})
    captured = _cpu_seconds()
    model.save(path)
    print(json.dumps({"ops": len(model.ops), "params": sum(p.numel() for p in module.parameters()),
                      "import": imported, "build": built - imported, "capture": captured - built,
                      "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))


def _cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def load_seconds(path, repeats=5):
    """The command's own time for a verb that only reads the file, less the time it takes to start."""
    from partita.native import command

    def run(*words):
        begin = time.perf_counter()
        subprocess.run([str(command()), *words], check=True, capture_output=True)
        return time.perf_counter() - begin

    start = min(run("--help") for _ in range(repeats))
    return min(run("models", str(path), "--json") for _ in range(repeats)) - start


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=32)
    parser.add_argument("--sequence", type=int, default=4096)
    parser.add_argument("--trace", metavar="FILE", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.trace:
        return trace(options.layers, options.sequence, options.trace)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "llama-3-8b.model.json"
        call = [sys.executable, __file__, "--layers", str(options.layers), "--sequence", str(options.sequence)]
        cost = json.loads(subprocess.run([*call, "--trace", str(path)], check=True, capture_output=True,
                                         text=True).stdout.splitlines()[-1])
        size, seconds = path.stat().st_size, load_seconds(path)
    print(f"llama, {options.layers} layers, sequence {options.sequence}: {cost['params'] / 1e9:.2f} B parameters, "
          f"{cost['ops']} ops")
    print(f"capture     {cost['capture']:6.1f} CPU seconds   (importing torch and transformers {cost['import']:.1f}, "
          f"building the module {cost['build']:.1f})")
    print(f"peak memory {cost['peak'] / 1e9:6.2f} GB of the whole process")
    print(f"file        {size / 1e6:6.2f} MB, loaded in {seconds:.3f} s")


if __name__ == "__main__":
    main()
