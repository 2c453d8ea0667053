"""Verifies every plan of the spine on small captured models, and writes docs/evidence/verify.md.

    python3 tests/parity/verify_table.py COMMAND            compare with one device; fails if one plan differs
    python3 tests/parity/verify_table.py COMMAND --write    and write the table
"""

import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA, PAGE = ROOT / "tests" / "data", ROOT / "docs" / "evidence" / "verify.md"

# What a user asks `partita recipe` for, and the captured models it runs on: two layers and a batch of 4, or four
# layers and a batch of 8 where a pipeline needs them.
MOE = ("mixtral-tiny",)
SMALL, DEEP = ("gpt2-tiny", "llama-tiny"), ("gpt2-tiny4", "llama-tiny4")
PLANS = [
    ("one rank", SMALL, "dp --ranks 1"),
    ("dp2", SMALL, "dp --ranks 2"),
    ("dp3, batch of 4", SMALL, "dp --ranks 3"),
    ("tp2", SMALL, "tp --ranks 2"),
    ("tp4", SMALL, "tp --ranks 4"),
    ("zero1 on 3, batch of 4", SMALL, "zero1 --ranks 3"),
    ("zero1-2 x tp2, 2 micro-batches", SMALL, "zero1 --ranks 4 --tp 2 --microbatches 2"),
    ("zero2 on 2, 2 micro-batches", SMALL, "zero2 --ranks 2 --microbatches 2"),
    ("zero3 on 2", SMALL, "zero3 --ranks 2"),
    ("zero3 on 3, batch of 4", SMALL, "zero3 --ranks 3"),
    ("2 replicas of zero3-2", SMALL, "zero3 --ranks 4 --replicas 2"),
    ("osdp on 2, 4 slices", SMALL, "osdp --ranks 2 --slices 4"),
    ("osdp of MLPs on 3, 2 slices, 2 micro-batches", DEEP, "osdp --ranks 3 --zdp *.mlp.* --slices 2 --microbatches 2"),
    ("sp2", SMALL, "sp --ranks 2"),
    ("sp2 x pp2, 2 micro-batches", SMALL, "sp --ranks 4 --pp 2 --microbatches 2"),
    ("cp3", SMALL, "cp --ranks 3"),
    ("dp2 x cp2 x tp2, 2 micro-batches", SMALL, "cp --ranks 8 --dp 2 --tp 2 --microbatches 2"),
    ("cp2 merged", SMALL, "cp --ranks 2 --merge lse"),
    ("cp3 merged, 16 tokens", SMALL, "cp --ranks 3 --merge lse"),
    ("dp2 x cp2 merged x tp2, 2 micro-batches", SMALL, "cp --ranks 8 --dp 2 --tp 2 --microbatches 2 --merge lse"),
    ("zero3-2 x cp2 merged, recompute", SMALL, "cp --ranks 4 --dp 2 --zero 3 --recompute --merge lse"),
    ("cp2 merged x pp2, 2 micro-batches", SMALL, "cp --ranks 4 --pp 2 --microbatches 2 --merge lse"),
    ("4 micro-batches", SMALL, "dp --ranks 1 --microbatches 4"),
    ("one rank, recompute", SMALL, "dp --ranks 1 --recompute"),
    ("zero3-2, recompute all but products", SMALL, "zero3 --ranks 2 --recompute --keep products"),
    ("tp2, recompute all but attention", SMALL, "tp --ranks 2 --recompute --keep attention"),
    ("pp2 x tp2, recompute", SMALL, "pipeline --ranks 4 --tp 2 --microbatches 2 --recompute"),
    ("pp2, 4 micro-batches", SMALL, "pipeline --ranks 2 --microbatches 4"),
    ("pp4, 4 micro-batches", DEEP, "pipeline --ranks 4 --microbatches 4"),
    ("pp4 gpipe, 4 micro-batches", DEEP, "pipeline --ranks 4 --microbatches 4 --schedule gpipe"),
    ("pp3, 5 micro-batches of 8 samples", DEEP, "pipeline --ranks 3 --microbatches 5"),
    ("pp2 x tp2", SMALL, "pipeline --ranks 4 --tp 2 --microbatches 4"),
    ("dp2 x pp2, batch of 8", DEEP, "pipeline --ranks 4 --dp 2 --microbatches 4"),
    ("dp2 x tp2", SMALL, "dp --ranks 4 --tp 2"),
    ("co-shard, 2 pieces", SMALL, "coshard --ranks 1"),
    ("co-shard, 3 pieces of 4 heads", SMALL[:1], "coshard --ranks 1 --pieces 3"),
    ("zero3 on 2, 2 pieces", SMALL, "zero3 --ranks 2 --pieces 2"),
    ("dp2 x pp2, batch of 8, 2 pieces", DEEP, "pipeline --ranks 4 --dp 2 --microbatches 4 --pieces 2"),
    ("loss in 4 pieces", SMALL, "loss-pieces --ranks 1"),
    ("sp2, loss in 3 pieces", SMALL, "sp --ranks 2 --loss-pieces 3"),
    ("pp2, 4 micro-batches, 2 pieces, loss in 2", SMALL,
     "pipeline --ranks 2 --microbatches 4 --pieces 2 --loss-pieces 2"),
    ("dp3, overlap", SMALL, "dp --ranks 3 --overlap"),
    ("zero1-2 x tp2, 2 micro-batches, overlap", SMALL, "zero1 --ranks 4 --tp 2 --microbatches 2 --overlap"),
    ("zero3 on 2, 2 micro-batches, overlap", SMALL, "zero3 --ranks 2 --microbatches 2 --overlap"),
    ("2 replicas of zero3-2, overlap", SMALL, "zero3 --ranks 4 --replicas 2 --overlap"),
    ("osdp on 2, 4 slices, overlap", SMALL, "osdp --ranks 2 --slices 4 --overlap"),
    ("dp2 x pp2, batch of 8, clipped, overlap", DEEP, "pipeline --ranks 4 --dp 2 --microbatches 4 --clip 0.1 --overlap"),
    ("dp3, clipped", SMALL, "dp --ranks 3 --clip 0.1"),
    ("zero3-2 x tp2, clipped, loss scale", SMALL, "zero3 --ranks 4 --tp 2 --clip 0.1 --precision loss_scale=1024"),
    ("dp2 x pp2, batch of 8, clipped", DEEP, "pipeline --ranks 4 --dp 2 --microbatches 4 --clip 0.1"),
    ("ep2", MOE, "ep --ranks 2"),
    ("ep4", MOE, "ep --ranks 4"),
    ("ep2 x tp2, zero1", MOE, "ep --ranks 4 --tp 2 --zero 1"),
    ("ep2 x pp2, one micro-batch", MOE, "ep --ranks 4 --pp 2 --microbatches 1"),
    ("zero3-2 x tp2 x pp2", DEEP, "zero3 --ranks 8 --tp 2 --pp 2 --microbatches 2"),
]


def partita(command, *words):
    done = subprocess.run([command, *words, "--json"], capture_output=True, text=True)
    if not done.stdout:
        sys.exit(f"{' '.join(words)}\n{done.stderr}")
    return json.loads(done.stdout)


def verify(command, folder, model, recipe):
    name, *flags = recipe.split()
    captured, plan = DATA / f"{model}.model.json", pathlib.Path(folder) / "plan.json"
    if not captured.exists():
        captured = pathlib.Path(folder) / captured.name
        partita(command, "models", model, "--batch", "4", "-o", str(captured))
    partita(command, "recipe", name, str(captured), *flags, "-o", str(plan))
    return partita(command, "verify", str(captured), str(plan), "--dtype", "float64", "--ignored-labels")


def row(title, model, answer):
    off = max(abs(a - b) for a, b in zip(answer["measured_peak_bytes"], answer["predicted_peak_bytes"]))
    errors = [f"{answer[key]:.1e}" for key in ("loss_error", "max_grad_error", "max_param_error")]
    return [title, model, "yes" if answer["equal"] else "NO", *errors, str(off)]


def page(rows):
    head = ["plan", "model", "equal", "loss", "gradients", "parameters", "peak bytes off"]
    table = "\n".join("| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head), *rows])
    return f"""# Every plan against one device

Two steps in float64, dropout 0, parameters without zeros, labels of -100 spread unevenly; errors are relative, the tolerance is 1e-9.
Parameters are held to what the optimizer makes of their gradients ([certificate](../certificate.md)).
"peak bytes off": the most that any rank's counted peak differs from the predicted one.
Made by `python3 tests/parity/verify_table.py build/bin/partita --write`; the same command without `--write` runs in `make test`.

{table}
"""


def main():
    command, rows, wrong = sys.argv[1], [], 0
    with tempfile.TemporaryDirectory() as folder:
        for title, models, recipe in PLANS:
            for model in models:
                answer = verify(command, folder, model, recipe)
                rows.append(row(title, model, answer))
                wrong += not answer["equal"] or rows[-1][-1] != "0"
                print(*rows[-1], *([] if answer["equal"] else [answer["worst_parameter"]]), sep="  ")
    if "--write" in sys.argv:
        PAGE.write_text(page(rows))
    print(f"{len(rows) - wrong} passed, {wrong} failed")
    sys.exit(wrong > 0)


main()
