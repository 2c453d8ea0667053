"""The spec sheet's step of one device beside published runs that trained data-parallel, without other parallelism.

    python bench/published_steps.py RUNS.csv [--longest 2048]

RUNS.csv has the columns source, model, layers, hidden, heads, ffn, vocab, seq_len, global_batch, micro_batch, hw, n_gpus, tp, pp,
recompute, iter_time_s, tokens_s_gpu. Runs on one node of 8 GPUs or fewer are taken. A step is built from its sizes and
profiled; communication and optimizer are not part of it, so a run takes longer. Attention of 2023's kernels was slower than
what PyTorch has now, which shows in long sequences: --longest leaves them out.
"""

import argparse
import csv
import json
import statistics
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path

COMMAND = Path(__file__).resolve().parents[1] / "build/full/bin/partita"
DEVICES = {"A100-80GB SXM": "A100-80GB", "A100-40GB SXM": "A100-40GB", "H100-80GB SXM": "H100-80GB"}


def usable(row, longest):
    return (row["hw"] in DEVICES and row["family"] == "dense" and row["tp"] == row["pp"] == "1" and row["cp"] in ("", "1")
            and row["micro_batch"] and int(row["n_gpus"] or 99) <= 8 and "fp8" not in row["dtype"]
            and row["vocab"] and int(row["seq_len"]) <= longest and (row["iter_time_s"] or row["tokens_s_gpu"]))


def config_of(row):
    if row["gated"] == "1":
        return {"model_type": "llama", "num_hidden_layers": int(row["layers"]), "hidden_size": int(row["hidden"]),
                "num_attention_heads": int(row["heads"]), "num_key_value_heads": int(row["kv_heads"]),
                "intermediate_size": int(row["ffn"]), "vocab_size": int(row["vocab"]),
                "max_position_embeddings": int(row["seq_len"])}
    return {"model_type": "gpt2", "n_layer": int(row["layers"]), "n_embd": int(row["hidden"]), "n_head": int(row["heads"]),
            "n_inner": int(row["ffn"]), "vocab_size": int(row["vocab"]), "n_positions": int(row["seq_len"]),
            "activation_function": "gelu"}


def predicted(row):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.json"
        path.write_text(json.dumps(config_of(row)))
        call = [COMMAND, "profile", path, "--batch", row["micro_batch"], "--seq", row["seq_len"], "--dtype", "bf16", "--device",
                DEVICES[row["hw"]], "--recompute", row["recompute"] or "none", "--json"]
        answer = subprocess.run(call, check=True, capture_output=True, text=True)
    return json.loads(answer.stdout)["seconds"] * int(row["global_batch"]) / int(row["n_gpus"]) / int(row["micro_batch"])


def measured(row):
    if row["iter_time_s"]:
        return float(row["iter_time_s"])
    return int(row["global_batch"]) * int(row["seq_len"]) / int(row["n_gpus"]) / float(row["tokens_s_gpu"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, metavar="RUNS.csv")
    parser.add_argument("--longest", type=int, default=1 << 30, metavar="TOKENS")
    options = parser.parse_args()
    errors = defaultdict(list)
    with options.runs.open() as file:
        for row in filter(lambda row: usable(row, options.longest), csv.DictReader(file)):
            off = predicted(row) / measured(row) - 1
            errors[row["source"], row["hw"]].append(off)
            print(f"{row['model']:<16} {row['hw']:<14} seq {row['seq_len']:>6} micro-batch {row['micro_batch']:>3} "
                  f"recompute {row['recompute'] or 'none':<5} {measured(row):9.3f} s {off:+7.1%}")
    for (source, device), offs in errors.items():
        middle = statistics.median(offs)
        scaled = statistics.mean(abs((1 + off) / (1 + middle) - 1) for off in offs)
        print(f"{source}, {device}: {len(offs)} runs, mean error {statistics.mean(map(abs, offs)):.1%}, bias "
              f"{statistics.mean(offs):+.1%}, after one factor {scaled:.1%}")


if __name__ == "__main__":
    main()
