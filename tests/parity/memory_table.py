"""Predicted memory of the zoo beside what was counted, one thread each, in bytes.

    python tests/parity/memory_table.py [NAME ...] [--write docs/profile.md]

executor: the most bytes that our executor asked of the allocator. saved: unique storages that `saved_tensors_hooks` sees when
forward ends, without parameters, buffers and the batch. eager: the most that PyTorch itself held, parameters included.
Models with convolutions or an LSTM are profiled with their own calibration (`partita calibrate MODEL`), which counts the
workspace of oneDNN. Exit code 1 when the executor's peak is off for a model without an opaque op.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "python")]

import torch
import transformers

import partita
from partita.native import library
from zoo import ZOO

COMMAND = ROOT / "build/full/bin/partita"
BEGIN, END = "<!-- written by tests/parity/memory_table.py -->\n", "<!-- end of memory_table -->"
HEAD = ("| model | opaque ops | executor, predicted | off | saved, predicted | off | eager, counted | predicted off |\n"
        "|---|---|---|---|---|---|---|---|\n")
CALIBRATED = ("convolution", "lstm", "mkldnn")


def profile(path, *flags):
    run = subprocess.run([COMMAND, "profile", path, *flags, "--json"], check=True, capture_output=True, text=True)
    return json.loads(run.stdout)


def predicted(model, folder):
    path = folder / "case.model.json"
    model.save(path)
    if not any(word in op["target"] for op in model.ops for word in CALIBRATED):
        return profile(path)
    table = folder / "calibration.json"
    subprocess.run([COMMAND, "calibrate", path, "--repeats", "1", "-o", table, "--quiet"], check=True)
    return profile(path, "--calibration", table)


def tensors(case_batch):
    values = case_batch.values() if isinstance(case_batch, dict) else case_batch
    return [value for value in values if isinstance(value, torch.Tensor)]


def storages(values):
    return {value.untyped_storage().data_ptr(): value.untyped_storage().nbytes() for value in values}


def forward(case, module, batch):
    with case.around():
        output = module(**batch) if isinstance(batch, dict) else module(*batch)
        return output.loss if case.loss is None else case.loss(output, batch)


class Kept:
    """A tensor as long as autograd keeps it."""

    def __init__(self, tensor):
        self.tensor = tensor


def saved_by_autograd(case, module, batch, own):
    import weakref

    kept = []

    def pack(tensor):
        holder = Kept(tensor)
        kept.append(weakref.ref(holder))
        return holder

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda holder: holder.tensor):
        loss = forward(case, module, batch)
    alive = [reference().tensor for reference in kept if reference() is not None]
    found = {key: size for key, size in storages(alive).items() if key not in own}
    found.pop(loss.untyped_storage().data_ptr(), None)
    return sum(found.values())


def measure(case, folder):
    module, batch = case.make()
    with case.around(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is baked in
        model = partita.capture(module, batch, case.loss, bake=case.bake)
    profiled = predicted(model, folder)
    session = library().Session(model.to_json(), model.weights(module), threads=1)
    session.step(model.named(batch))
    executor = session.peak_bytes()[0]
    own = storages([*module.parameters(), *module.buffers(), *tensors(batch), *model.constants.values()])
    saved = saved_by_autograd(case, module, batch, own)
    for parameter in module.parameters():
        parameter.grad = None
    eager = library().peak_of(lambda: forward(case, module, batch).backward()) + sum(own.values())
    return profiled, executor, saved, eager


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--write", type=Path, metavar="PAGE")
    options = parser.parse_args()
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    lines, exact, whole, near, wrong = [], 0, 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for name in options.names or list(ZOO):
            profiled, executor, saved, eager = measure(ZOO[name], Path(folder))
            peak, off = profiled["peak_bytes"], executor - profiled["peak_bytes"]
            share = peak / eager - 1
            whole += profiled["opaque_ops"] == 0
            exact += profiled["opaque_ops"] == 0 and off == 0
            wrong += profiled["opaque_ops"] == 0 and off != 0
            near += abs(share) <= 0.01
            lines.append(f"| {name} | {profiled['opaque_ops'] or ''} | {peak} | {off} | {profiled['saved_bytes']} | "
                         f"{saved - profiled['saved_bytes']} | {eager} | {share:+.2%} |")
            print(lines[-1], file=sys.stderr, flush=True)
    text = (f"\n{exact} of {whole} models without an opaque op: the executor's peak is predicted to the byte. "
            f"Eager's peak is within 1 % of the same prediction on {near} of {len(lines)}.\n\n{HEAD}" + "\n".join(lines) + "\n\n")
    if options.write:
        before, after = options.write.read_text().split(BEGIN)[0], options.write.read_text().split(END)[1]
        options.write.write_text(before + BEGIN + text + END + after)
    else:
        print(text)
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
