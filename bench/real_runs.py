"""The planner's choice against every recipe and random plans, really run on two thread ranks, each on a core of its own.

    python3 bench/real_runs.py COMMAND [--write] [--models gpt,llama] [--seed 1]

Calibrates this machine on the models first. For each model and three limits of memory: the step time of the plan that
`partita plan --measure` chooses over the best of all recipes and 20 random plans that fit, and beside it that of the plan
which is fastest by prediction alone. All run in turns (`partita lab race`): first every recipe and random plan; then, for each
limit, the fastest of those that fit against the chosen ones. A ratio is the median over the rounds of the chosen plan's time
over that of the rival whose time is least. Wants a quiet machine. `--write` puts the rows into the table of docs/evidence/real_runs.md,
model by model, in place of those the model had. Exit 1: a choice is more than 5 % slower.
"""

import argparse
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "evidence" / "real_runs.md"
LIMIT, FINALISTS, RANDOM_PLANS = 1.05, 4, 20
HEAT, FINAL = 2, 5  # rounds in which all run, before those that may win go on: of all rivals, of the fastest and the chosen
ROUNDS, TOP = 4, 10  # of plan --measure

MODELS = {
    "gpt": ({"model_type": "gpt2", "n_layer": 4, "n_embd": 256, "n_head": 4, "vocab_size": 4096, "n_positions": 128}, 8, 128),
    "llama": ({"model_type": "llama", "num_hidden_layers": 4, "hidden_size": 256, "intermediate_size": 688, "num_attention_heads": 8,
               "num_key_value_heads": 4, "vocab_size": 4096, "max_position_embeddings": 128}, 8, 128),
    "t5": ({"model_type": "t5", "num_layers": 3, "d_model": 256, "d_kv": 64, "num_heads": 4, "d_ff": 1024, "vocab_size": 4096}, 8, 128),
    "swin": ({"model_type": "swin", "image_size": 64, "patch_size": 4, "window_size": 8, "embed_dim": 64, "depths": [2, 2],
              "num_heads": [2, 4]}, 8, None),
    "mixtral": ({"model_type": "mixtral", "num_hidden_layers": 2, "hidden_size": 256, "intermediate_size": 512,
                 "num_attention_heads": 8, "num_key_value_heads": 4, "num_local_experts": 4, "num_experts_per_tok": 2,
                 "vocab_size": 4096, "max_position_embeddings": 128}, 8, 128),
}
RECIPES = ["dp", "zero1", "zero2", "zero3", "tp", "sp", "ep", "dp --loss-pieces 4", "tp --loss-pieces 4", "dp --recompute",
           "zero3 --recompute", "zero1 --recompute", "coshard", "dp --microbatches 2", "zero1 --microbatches 4", "osdp --slices 2",
           *(f"pipeline --schedule {name} --microbatches {count}"
             for name in ("1f1b", "gpipe", "interleaved --chunks 2", "wave --waves 1", "zb-h1", "zb-v", "interlaced") for count in (2, 4))]


class Bench:
    def __init__(self, command, folder):
        self.command, self.folder = command, folder

    def ask(self, *words):
        done = subprocess.run([self.command, *map(str, words), "--json"], capture_output=True, text=True)
        return json.loads(done.stdout) if done.returncode == 0 else None

    def build(self, name):
        config, batch, seq = MODELS[name]
        source, target = self.folder / f"{name}.json", self.folder / f"{name}.model.json"
        source.write_text(json.dumps(config))
        words = ["--seq", seq] if seq else []
        assert self.ask("models", source, "--batch", batch, *words, "-o", target), name
        return target

    def price(self, model, plan):
        """Predicted seconds and bytes of a plan; None where it cannot be lowered."""
        return self.ask("simulate", model, plan, "--cluster", "2xcpu", "--calibration", self.calibration)

    def race(self, model, plans, rounds):
        """Of each plan its seconds and those of its rounds."""
        found = self.ask("lab", "race", model, *plans, "--rounds", rounds)
        return {pathlib.Path(plan["file"]): (plan["seconds"], plan["rounds"]) for plan in found["plans"]}


def edited(plan, parameters, draw):
    """A recipe's plan with storage, recomputation and micro-batches drawn anew."""
    axes = [axis["name"] for axis in plan["mesh"] if axis["name"] == "dp"]
    if axes:
        plan["store"] = [{"params": name, "axis": "dp", "what": draw.choice(["state", "gradient", "parameter"]), "reduce": "each"}
                         for name in parameters if draw.random() < 0.5]
    blocks = plan.get("recompute", [])
    plan["recompute"] = [block for block in blocks if draw.random() < 0.5]
    return plan


def random_plans(bench, model, draw):
    parameters = [t["name"] for t in json.loads(model.read_text())["tensors"] if t.get("role") == "parameter"]
    plans = []
    for attempt in range(10 * RANDOM_PLANS):
        if len(plans) == RANDOM_PLANS:
            break
        words = [draw.choice(["dp", "tp", "pipeline"]), "--ranks", 2, "--microbatches", draw.choice([1, 2, 4, 8])]
        words += draw.choice([[], ["--recompute"], ["--loss-pieces", 2]])
        path = bench.folder / f"{model.stem}-random-{attempt}.json"
        if not bench.ask("recipe", words[0], model, *words[1:], "-o", path):
            continue
        path.write_text(json.dumps(edited(json.loads(path.read_text()), parameters, draw)))
        if priced := bench.price(model, path):
            plans.append((path, f"random {attempt}", priced))
    return plans


def recipes(bench, model):
    plans = []
    for k, recipe in enumerate(RECIPES):
        name, *words = recipe.split()
        path = bench.folder / f"{model.stem}-recipe-{k}.json"
        made = bench.ask("recipe", name, model, "--ranks", 2, *words, "-o", path)
        if made and (priced := bench.price(model, path)):
            plans.append((path, made["summary"], priced))
    return plans


def limits(plans):
    """Just above the least any of them needs, all that the largest needs, and between them."""
    peaks = [max(priced["peak_bytes"]) for _, _, priced in plans]
    least, most = 1.05 * min(peaks), 1.05 * max(peaks)
    return [int(least), int((least * most) ** 0.5), int(most)]


def what_it_does(path):
    """A plan without what does not change its run."""
    plan = json.loads(path.read_text())
    return {key: value for key, value in plan.items() if key not in ("summary", "memory", "cluster", "seq")}


def compare(bench, model, chosen, rivals, heat):
    """For each of the chosen plans its seconds and its ratio to the best rival; that one and its seconds: in turns."""
    finalists = sorted(rivals, key=lambda rival: heat[rival[0]][0])[:FINALISTS]
    final = bench.race(model, dict.fromkeys([*chosen, *(path for path, _, _ in finalists)]), FINAL)
    best = min(finalists, key=lambda rival: final[rival[0]][0])
    same = [path for path in chosen if what_it_does(path) == what_it_does(best[0])]

    def ratio(path):
        return 1.0 if path in same else statistics.median(a / b for a, b in zip(final[path][1], final[best[0]][1]))

    return [(final[path][0], ratio(path)) for path in chosen], best[1], final[best[0]][0]


def choose(bench, model, limit):
    """The plan chosen by running, that by prediction (the same file where they are one plan), and the former's summary."""
    chosen, predicted = bench.folder / f"{model.stem}-{limit}.json", bench.folder / f"{model.stem}-{limit}-predicted.json"
    found = bench.ask("plan", model, "--strict", "--cluster", "2xcpu", "--memory", f"{limit}B", "--calibration", bench.calibration,
                      "--top", TOP, "--measure", ROUNDS, "-o", chosen)
    if not found:
        return None
    first = min(found["plans"], key=lambda plan: (not plan["lowered"], plan["step_seconds"]))
    predicted.write_text(json.dumps(first["plan"]))
    return chosen, chosen if first is found["plans"][0] else predicted, found["plans"][0]["summary"]


def study(bench, name, draw):
    model = bench.build(name)
    plans = recipes(bench, model) + random_plans(bench, model, draw)
    heat = bench.race(model, [path for path, _, _ in plans], HEAT)
    rows = []
    for limit in limits(plans):
        fits = [plan for plan in plans if max(plan[2]["peak_bytes"]) <= limit]
        if choice := choose(bench, model, limit):
            chosen, predicted, summary = choice
            [(own, ratio), (_, by_prediction)], best, other = compare(bench, model, [chosen, predicted], fits, heat)
        else:
            summary, own, ratio, by_prediction, best, other = "nothing", 0, float("inf"), float("inf"), "", 0
        rows.append([name, f"{limit / 2**20:.0f} MiB", summary, f"{1e3 * own:.1f}", str(len(fits)), best, f"{1e3 * other:.1f}",
                     f"{by_prediction:.3f}", f"{ratio:.3f}"])
        print(*rows[-1], sep="  ", flush=True)
    return rows


HEAD = ["model", "memory", "chosen", "ms a step", "others that fit", "best of them", "ms a step", "ratio by prediction", "ratio"]


def known_rows():
    """The rows of the page, if it has this table."""
    table = [line.strip("| \n").split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("|")]
    return table[2:] if table and table[0] == HEAD else []


def write(name, rows):
    """Puts the rows of a model into the page."""
    others = [row for row in known_rows() if row[0] != name]
    PAGE.write_text(page(sorted(others + rows, key=lambda row: list(MODELS).index(row[0]))))


def page(rows):
    table = "\n".join("| " + " | ".join(cells) + " |" for cells in [HEAD, ["---"] * len(HEAD), *rows])
    return f"""# Chosen plans, really run

Two thread ranks, each kept on a core of its own, after `partita calibrate`: the plan that `partita plan --top {TOP} --measure {ROUNDS}` chooses against all recipes
and 20 random plans that fit, at three limits of memory; "by prediction": the plan it would have chosen without `--measure`. The limit
of the ratio is {LIMIT}. Made by `python3 bench/real_runs.py build/bin/partita --write`.

{table}
"""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("command")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options.command, pathlib.Path(folder))
        names = options.models.split(",")
        bench.calibration = bench.folder / "calibration.json"
        assert bench.ask("calibrate", *(bench.build(name) for name in names), "--cluster", "2xcpu", "-o", bench.calibration)
        for name in names:
            rows += study(bench, name, random.Random(options.seed))
            if options.write:
                write(name, rows[-3:])
    slow = sum(float(row[-1]) > LIMIT for row in rows)
    print(f"{len(rows) - slow} of {len(rows)} within {LIMIT}")
    sys.exit(slow > 0)


if __name__ == "__main__":
    main()
