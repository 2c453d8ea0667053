"""The situations of four papers, each with its own idea against the best plan without it: one table.

usage: table.py PARTITA [SITUATION ...]      osdp, wave, coshard, 3f1b, interlaced; all without one

Only the command `partita` computes; nothing is typed in but the situations. Seconds of osdp are those its authors
measured (tests/data/osdp_block_table.csv), those of wave are exact in units of a device's forward, those of the
others are simulated on the spec sheets of the named clusters.
"""
import csv
import fractions
import json
import math
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = pathlib.Path(tempfile.mkdtemp())
ROW = "{:<52} {:<43} {:<48} {}"


def partita(*words, unless=1):
    """The JSON of a command, or None where it ends with `unless`: 1, nothing fits; 2, the model cannot be split so."""
    done = subprocess.run([sys.argv[1], *map(str, words), "--json"], capture_output=True, text=True)
    if done.returncode not in (0, unless):
        sys.exit(f"partita {' '.join(map(str, words))}: {done.stderr}")
    return json.loads(done.stdout) if done.returncode == 0 else None


def show(situation, ours, others):
    """`ours` and `others`: (name, time) or None."""
    if ours and others:
        gain = float(others[1] / ours[1])
        verdict = f"{gain:.3f} x as fast" if gain > 1.0005 else f"does not pay: {gain:.3f}"
    else:
        verdict = "only it fits" if ours else "does not fit" if others else "nothing fits"
    text = [f"{one[0]} {float(one[1]):.5g}" if one else "nothing fits" for one in (ours, others)]
    print(ROW.format(situation, *text, verdict), flush=True)


# OSDP: every block replicated, sharded in part, or sharded, under a memory limit.
STACKS = {"narrow-deep": "96x1024", "narrow-deep ": "48x1536", "wide-shallow": "8x4096", "wide-shallow ": "3x6144",
          "inconsistent": "24x1024 12x2048 2x4096", "inconsistent ": "16x1536 4x3072"}
RESERVE = 800  # MB that the authors leave


def osdp():
    table = {(int(row["hidden"]), int(row["batch_index"])): row
             for row in csv.DictReader(open(ROOT / "tests/data/osdp_block_table.csv"))}
    for kind, stack in STACKS.items():
        for limit in (8192, 16384):
            answers = {}
            for name, modes in {"mixed": "0123", "all sharded": "3", "all replicated": "0"}.items():
                sweep = []
                for index in range(1, 5):
                    operators = []
                    for part in stack.split():
                        count, hidden = map(int, part.split("x"))
                        row = table[hidden, index]
                        operators.append({"count": count, "options": [
                            {"name": mode, "seconds": float(row[f"time_s_{mode}"]),
                             "bytes": math.ceil(float(row[f"mem_mb_{mode}"]) * 2**20)} for mode in modes]})
                    sweep.append({"samples": 96 * index, "budget": (limit - RESERVE) * 2**20, "operators": operators})
                (FOLDER / "options.json").write_text(json.dumps(sweep))
                found = partita("lab", "choose", "--options", FOLDER / "options.json")
                answers[name] = found and (f"{name}, {found['samples']:.0f} rows,", 1 / found["samples_per_second"])
            others = [answer for name, answer in answers.items() if name != "mixed" and answer]
            show(f"osdp {kind.strip()} {stack}, {limit} MB", answers["mixed"], min(others, key=lambda o: o[1], default=None))


# Hanayo: waves against the schedules it names, on stages whose costs come from profiles. Memory is that of 1F1B.
PIPELINES = {"gpt3-1.3b": 8, "bert-large": 32}
NAMES = ("1f1b", "chimera", "interleaved", "zb-v")


def shares(model, batch, devices):
    """Embedding and head of a model as shares of a device's forward."""
    seconds = {"layers": 0.0, "embedding": 0.0, "head": 0.0}
    for module in partita("profile", model, "--batch", batch, "--device", "A100-80GB", "--depth", 9)["modules"]:
        parts = module["name"].split(".")
        kind = ("layers" if any(part.isdigit() for part in parts)
                else "embedding" if any("emb" in part or part in ("wte", "wpe") for part in parts) else "head")
        seconds[kind] += module["seconds"]
    return {kind: fractions.Fraction(seconds[kind] / seconds["layers"] * devices).limit_denominator(100)
            for kind in ("embedding", "head")}


def wave(most=32):
    for model, batch in PIPELINES.items():
        for devices in (d for d in (8, 16, 32) if d <= most):
            cost = shares(model, batch, devices)
            rows = partita("lab", "schedule", "--compare", "--effort", 1, "--devices", devices, "--microbatches", 2 * devices,
                           "--forward", 1, "--backward", 2, "--comm", "1/50", "--embedding", cost["embedding"],
                           "--head", cost["head"], "--memory-cap", devices, "--cap-unit", "microbatches",
                           "--weight-memory", 1)["rows"]
            fitting = [(row["name"], fractions.Fraction(row["makespan"])) for row in rows if row["fits"]]
            ours = [row for row in fitting if row[0].split()[0] == "wave"]
            for kind, names in {"": NAMES[:3], " and zb-v": NAMES}.items():
                others = [row for row in fitting if row[0].split()[0] in names]
                show(f"wave {model}, {devices} devices, 1f1b's memory{kind}",
                     min(ours, key=lambda o: o[1], default=None), min(others, key=lambda o: o[1], default=None))


# nnScaler: plans as data, simulated beside the recipes that others have.
def simulated(model, batch, cluster, ranks, recipes):
    """{recipe: (seconds, peak bytes)} of those that the model has."""
    out = {}
    for recipe in recipes:
        plan = FOLDER / "plan.json"
        name, *sizes = recipe.split()
        if partita("recipe", name, model, "--batch", batch, "--ranks", ranks, *sizes, "-o", plan, unless=2):
            answer = partita("simulate", model, plan, "--batch", batch, "--cluster", cluster)
            out[recipe] = (answer["step_seconds"], max(answer["peak_bytes"]))
    return out


def compare(situation, model, batch, cluster, ranks, ours, others, peers=()):
    """At the memory that every plan needs at most, and at smaller ones, down to what ours needs at least. Then
    against `peers` alone, the plans that the paper compares with."""
    mine = simulated(model, batch, cluster, ranks, ours)
    theirs = simulated(model, batch, cluster, ranks, others)
    least = min((peak for _, peak in mine.values()), default=0)
    limits = sorted({peak for _, peak in [*mine.values(), *theirs.values()] if peak >= least}, reverse=True)
    for limit in sorted({limits[0], limits[len(limits) // 3], limits[2 * len(limits) // 3], limits[-1]}, reverse=True):
        best = [min(((name.strip(), seconds) for name, (seconds, peak) in side.items() if peak <= limit),
                    key=lambda one: one[1], default=None) for side in (mine, theirs)]
        show(f"{situation}, {limit / 2**30:.2f} GiB", *best)
    fastest = [min(((name, side[name][0]) for name in side if side is mine or name in peers), key=lambda one: one[1],
                   default=None) for side in (mine, theirs)]
    if peers:
        show(f"{situation}, its peers", *fastest)


def config(name, **keys):
    path = FOLDER / f"{name}.json"
    path.write_text(json.dumps(keys))
    return path


CLASSIC = ("dp", "zero3", "dp --recompute", "zero3 --recompute", "tp", "tp --recompute")


def coshard():
    for window in (8, 24):
        swin = config("swin", model_type="swin", image_size=768, window_size=window, embed_dim=128, depths=[2, 2, 2, 2],
                      num_heads=[4, 8, 16, 32], num_labels=1000)
        compare(f"co-shard Swin, windows of {window}", swin, 4, "4xV100-32GB", 4,
                ("coshard --pieces 2", "coshard --pieces 4", "coshard --pieces 4 --zero 3"), CLASSIC)


def three_f_one_b():
    evoformer = config("evoformer", model_type="evoformer", num_blocks=4)
    small = ("dp --recompute --microbatches 2", "zero3 --recompute --microbatches 2")
    for cluster in ("4xA100-80GB", "4x1xV100-32GB"):
        compare(f"3f1b Evoformer, 4 blocks, {cluster}", evoformer, 8, cluster, 4,
                ("3f1b --microbatches 8", "3f1b --microbatches 8 --recompute"), CLASSIC + small,
                ("tp", "tp --recompute"))


def interlaced():
    pipelines = ("pipeline --microbatches 8", "pipeline --microbatches 16", "pipeline --microbatches 8 --schedule gpipe")
    for vocab, cluster in ((32128, "4x1xV100-32GB"), (500000, "4xV100-32GB"), (500000, "4x1xV100-32GB")):
        mbart = config("mbart", model_type="mbart", vocab_size=vocab, d_model=1024, encoder_layers=4, decoder_layers=4,
                       scale_embedding=True)
        compare(f"interlaced mBART {vocab}, {cluster}", mbart, 16, cluster, 4,
                ("interlaced --microbatches 8", "interlaced --microbatches 16"), CLASSIC + pipelines, pipelines)


SITUATIONS = {"osdp": osdp, "wave": wave, "wave-8": lambda: wave(8), "coshard": coshard, "3f1b": three_f_one_b,
              "interlaced": interlaced}


def main():
    wanted = sys.argv[2:] or [name for name in SITUATIONS if name != "wave-8"]
    print(ROW.format("situation", "with it", "best without it", "gain"))
    for name in wanted:
        SITUATIONS[name]()


if __name__ == "__main__":
    main()
