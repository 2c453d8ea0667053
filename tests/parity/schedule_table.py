"""Verifies every pipeline schedule that applies on GPT, T5, Swin and an Evoformer stack, and writes docs/evidence/pipelines.md.

    python3 tests/parity/schedule_table.py COMMAND [--write | --share K/N]

Each row is compared with one device: two steps in float64, and the counted peak of every rank with the predicted one.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "evidence" / "pipelines.md"

# Small, deep enough for four devices with two stages each.
MODELS = {
    "gpt": ({"model_type": "gpt2", "n_layer": 8, "n_embd": 32, "n_head": 4, "vocab_size": 64, "n_positions": 16}, ["--seq", "16"]),
    "t5": ({"model_type": "t5", "num_layers": 5, "d_model": 32, "d_kv": 8, "num_heads": 4, "d_ff": 64, "vocab_size": 64}, ["--seq", "16"]),
    "swin": ({"model_type": "swin", "image_size": 32, "patch_size": 4, "window_size": 4, "embed_dim": 16, "depths": [4, 4],
              "num_heads": [2, 4]}, []),
}
# Names of the catalogue with the words they need; the devices they are for.
SCHEDULES = [
    ("gpipe", "", (2, 3, 4)), ("1f1b", "", (2, 3, 4)), ("eager-1f1b", "", (2, 3, 4)),
    ("interleaved", "--chunks 2", (2, 3, 4)), ("looped-bfs", "--chunks 2", (2, 3, 4)),
    ("wave", "--waves 1", (2, 3, 4)), ("wave", "--waves 2", (2,)),
    ("zb-h1", "", (2, 3, 4)), ("zb-h2", "", (2, 3, 4)), ("zb-v", "", (2, 3, 4)), ("interleaved-zb", "--chunks 2", (2, 3, 4)),
    ("chimera", "", (2, 4)), ("bitpipe", "", (2, 4)), ("dualpipe", "", (2, 4)),
    ("interlaced", "", (2, 3, 4)), ("v-half", "", (2, 3, 4)), ("v-min", "", (2, 3, 4)), ("dualpipev", "", (2, 3, 4)),
]
INSIDE = [("1f1b", "", 4, "--dp 2"), ("wave", "--waves 1", 4, "--dp 2 --zero 1"), ("zb-v", "", 4, "--dp 2 --zero 3"),
          ("interleaved", "--chunks 2", 4, "--tp 2"), ("zb-h1", "", 4, "--dp 2 --recompute"),
          ("interlaced", "", 4, "--dp 2 --zero 1"), ("interlaced", "", 6, "--tp 2 --loss-pieces 2 --clip 0.1"),
          ("dualpipe", "", 8, "--dp 2 --zero 1"), ("v-min", "", 8, "--dp 2 --tp 2 --zero 2 --clip 0.1")]


def applies(model, name):
    """The interlaced pipeline is for models that look tokens up."""
    return model != "swin" or name != "interlaced"


def cases():
    for model in MODELS:
        for name, words, devices in SCHEDULES:
            for count in devices if applies(model, name) else ():
                yield model, name, words, count, ""
        for name, words, ranks, inside in INSIDE:
            if applies(model, name) and (model != "swin" or "--recompute" not in inside):
                yield model, name, words, ranks, inside
    for count in (2, 3, 4):
        yield "evoformer-tiny", "3f1b", "", count, ""


def partita(command, *words):
    done = subprocess.run([command, *words, "--json"], capture_output=True, text=True)
    if not done.stdout:
        sys.exit(f"{' '.join(words)}\n{done.stderr}")
    return json.loads(done.stdout)


def build(command, folder):
    files = {}
    for name, (config, words) in [*MODELS.items(), ("evoformer-tiny", (None, []))]:
        source = name
        if config:
            source = folder / f"{name}.json"
            source.write_text(json.dumps(config))
        files[name] = str(folder / f"{name}.model.json")
        partita(command, "models", str(source), "--batch", "24", *words, "-o", files[name])
    return files


def verify(command, folder, model, name, words, ranks, inside):
    plan = str(folder / "plan.json")
    sizes = {"dp": 1, "tp": 1, **{w: int(inside.split()[i + 1]) for i, f in enumerate(inside.split()) if (w := f[2:]) in ("dp", "tp")}}
    devices = ranks // (sizes["dp"] * sizes["tp"])
    made = partita(command, "recipe", "pipeline", model, "--ranks", str(ranks), "--schedule", name, *words.split(),
                   *inside.split(), "--microbatches", str(2 * devices), "-o", plan)
    return made["summary"], partita(command, "verify", model, plan, "--dtype", "float64")


def row(model, summary, inside, answer):
    off = max(abs(a - b) for a, b in zip(answer["measured_peak_bytes"], answer["predicted_peak_bytes"]))
    errors = [f"{answer[key]:.1e}" for key in ("loss_error", "max_grad_error", "max_param_error")]
    extra = f", {inside[inside.index('--clip'):]}".replace("--", "") if "--clip" in inside else ""
    return [summary + extra, model, "yes" if answer["equal"] else "NO", *errors, str(off)]


def page(rows):
    head = ["plan", "model", "equal", "loss", "gradients", "parameters", "peak bytes off"]
    table = "\n".join("| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head), *rows])
    return f"""# Every schedule against one device

Two steps in float64 on thread ranks; errors are relative, the tolerance is 1e-9. "peak bytes off": the most that any rank's counted peak
differs from the predicted one. Chimera, BitPipe and DualPipe keep every stage on two devices and need an even number of them. 3F1B is for
models that go three times through their weights. The interlaced pipeline spreads the tokens' table and the head over all devices; it is
for models that look tokens up.
Made by `python3 tests/parity/schedule_table.py build/bin/partita --write`; a share of it runs in `make test`.

{table}
"""


def share(all_cases):
    if "--share" not in sys.argv:
        return all_cases
    part, parts = map(int, sys.argv[sys.argv.index("--share") + 1].split("/"))
    return all_cases[part::parts]


def main():
    command, rows, wrong = sys.argv[1], [], 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        files = build(command, folder)
        for model, name, words, ranks, inside in share(list(cases())):
            summary, answer = verify(command, folder, files[model], name, words, ranks, inside)
            rows.append(row(model, summary, inside, answer))
            wrong += not answer["equal"] or rows[-1][-1] != "0"
            print(*rows[-1], sep="  ", flush=True)
    if "--write" in sys.argv:
        PAGE.write_text(page(rows))
    print(f"{len(rows) - wrong} passed, {wrong} failed")
    sys.exit(wrong > 0)


main()
