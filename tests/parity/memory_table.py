"""Predicted memory and flops of the zoo beside what was counted, one thread each, in bytes.

    python tests/parity/memory_table.py [NAME ...] [--write docs/evidence/memory.md]

executor: the most bytes that our executor asked of the allocator. eager: the most that PyTorch itself held. Both with
parameters and batch. saved: unique storages that `saved_tensors_hooks` sees when forward ends, without parameters, buffers and
the batch. flops: FlopCounterMode, and attention by PyTorch's own formula, which it leaves out on the CPU.
Models with convolutions or an LSTM are profiled with their own calibration (`partita calibrate MODEL`), which counts the
workspace of oneDNN. Exit code 1 when the executor's peak is off for a model without an opaque op, when eager's is within 1 % on
fewer than 20, or when saved bytes or flops are off by other than REASONS says.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import warnings
import weakref
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(HERE), str(ROOT / "python")]

import torch
import transformers
from safetensors.torch import save_file
from torch.utils import flop_counter

import partita
from partita.native import library
from zoo import ZOO

COMMAND = ROOT / "build/full/bin/partita"
BEGIN, END = "<!-- written by tests/parity/memory_table.py -->\n", "<!-- end of memory_table -->"
NEAR, ENOUGH = 0.01, 20
HEAD = ("| model | opaque ops | executor, counted | predicted off | eager, counted | predicted off | saved, counted | predicted off "
        "| flops, counted | predicted off |\n|---|---|---|---|---|---|---|---|---|---|\n")
CALIBRATED = ("convolution", "lstm", "mkldnn")
# Where eager PyTorch does not do what the graph says, and the graph cannot know: what is off, by how much exactly, and the line
# that does it.
POOLED = ("flops", -4096, "the pooled output (`self.pooler(sequence_output)`: addmm of [2, 32] and [32, 32]) is not used by the "
          "loss; capture leaves it out")
WAVE = ("flops", -50688, "`hidden_states.requires_grad = True` in its feature extractor asks the first convolution for the gradient "
        "of the waveform ([2, 1, 400]), which no parameter needs; capture leaves it out")
REASONS = {
    **dict.fromkeys(["squeezebert", "fnet", "layoutlm"], POOLED),
    **dict.fromkeys(["wav2vec2", "hubert", "wavlm", "sew", "unispeech"], WAVE),
    "phimoe": ("saved", -512, "autograd saves the masks of `scores.masked_fill` and `masked_scores.masked_fill` in its sparsemixer (4 "
               "of [32, 4]), but its PhimoeMultiplier gives no gradient back to what they masked: no op of the step reads them"),
    "gru": ("saved", -4096, "ATen's cell changes the three gates in place in one tensor of [2, 48]; two of them are saved, which "
            "keeps the third: 128 bytes in each of 32 cells. A graph without mutations makes each gate anew"),
    "llama, checkpointed": ("saved", 1024, "cosine and sine ([1, 16, 8] each) are keyword arguments of a checkpointed layer; the "
                            "checkpoint holds them in its closure, where saved_tensors_hooks does not look"),
}


def profile(path, *flags):
    run = subprocess.run([COMMAND, "profile", path, *flags, "--json"], check=True, capture_output=True, text=True)
    return json.loads(run.stdout)


def predicted(model, batch, folder):
    path = folder / "case.model.json"
    model.save(path)
    if not any(word in op["target"] for op in model.ops for word in CALIBRATED):
        return profile(path)
    table, inputs = folder / "calibration.json", folder / "batch.safetensors"
    save_file({name: value.detach().contiguous().clone() for name, value in model.named(batch).items()}, inputs)
    subprocess.run([COMMAND, "calibrate", path, "--inputs", inputs, "--rounds", "1", "-o", table, "--quiet"], check=True,
                   stdout=subprocess.DEVNULL)
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
    """A tensor as long as autograd keeps it; without its history, which would keep itself alive in a circle."""

    def __init__(self, tensor):
        self.tensor = tensor.detach()


def saved_by_autograd(case, module, batch, own):
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


def count_flops(case, module, batch):
    def attention(query, key, value, *args, **options):
        return flop_counter.sdpa_flop_count(query, key, value)

    def attention_backward(gradient, query, key, value, *args, **options):
        return flop_counter.sdpa_backward_flop_count(gradient, query, key, value)

    aten = torch.ops.aten
    mapping = {aten._scaled_dot_product_flash_attention_for_cpu: attention,
               aten._scaled_dot_product_flash_attention_for_cpu_backward: attention_backward}
    with flop_counter.FlopCounterMode(display=False, custom_mapping=mapping) as counter:
        forward(case, module, batch).backward()
    return counter.get_total_flops()


@dataclass
class Row:
    """What was counted, and how far the prediction is off."""

    name: str
    opaque: int
    executor: int
    eager: int
    saved: int
    flops: int
    profile: dict

    def executor_off(self):
        return self.profile["peak_bytes"] - self.executor

    def eager_off(self):
        return self.profile["eager"]["peak_bytes"] / self.eager - 1

    def saved_off(self):
        return self.profile["eager"]["saved_bytes"] - self.saved

    def flops_off(self):
        return int(self.profile["flops"]["forward"] + self.profile["flops"]["backward"]) - self.flops

    def text(self):
        return (f"| {self.name} | {self.opaque or ''} | {self.executor} | {self.executor_off()} | {self.eager} | "
                f"{self.eager_off():+.2%} | {self.saved} | {self.saved_off()} | {self.flops} | {self.flops_off()} |")


def measure(name, folder):
    case = ZOO[name]
    module, batch = case.make()
    with case.around(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is baked in
        model = partita.capture(module, batch, case.loss, bake=case.bake, infer=False)
    profiled = predicted(model, batch, folder)
    session = library().Session(model.to_json(), model.weights(module), threads=1)
    session.step(model.named(batch))
    own = storages([*module.parameters(), *module.buffers(), *tensors(batch)])
    saved = saved_by_autograd(case, module, batch, own)
    flops = count_flops(case, module, batch)
    module.zero_grad()
    eager = library().peak_of(lambda: forward(case, module, batch).backward()) + sum(own.values())
    return Row(name, profiled["opaque_ops"], session.peak_bytes()[0], eager, saved, flops, profiled)


def summary(rows):
    whole = [row for row in rows if not row.opaque]
    return (f"{len(whole)} of {len(rows)} models have no opaque op. Predicted to the byte: the executor's peak of "
            f"{sum(row.executor_off() == 0 for row in whole)} of these and of {sum(row.executor_off() == 0 for row in rows)} "
            f"in all; bytes saved for backward of {sum(row.saved_off() == 0 for row in rows)}; flops of "
            f"{sum(row.flops_off() == 0 for row in rows)}. Eager's peak is within 1 % on "
            f"{sum(abs(row.eager_off()) <= NEAR for row in rows)}, to the byte or a few on most.")


def wrong(rows):
    for row in rows:
        if row.executor_off() and not row.opaque:
            yield f"{row.name}: the executor's peak is off"
        kind, off, _ = REASONS.get(row.name, ("", 0, ""))
        for name, found in (("saved", row.saved_off()), ("flops", row.flops_off())):
            if found != (off if kind == name else 0):
                yield f"{row.name}: {name} is {found} off, and no reason is known"
    if len(rows) == len(ZOO) and sum(abs(row.eager_off()) <= NEAR for row in rows) < ENOUGH:
        yield f"eager's peak is within 1 % on fewer than {ENOUGH}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--write", type=Path, metavar="PAGE")
    options = parser.parse_args()
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in options.names or list(ZOO):
            rows.append(measure(name, Path(folder)))
            print(rows[-1].text(), file=sys.stderr, flush=True)
    reasons = "".join(f"- {name}: {kind} {off:+}: {why}\n" for name, (kind, off, why) in REASONS.items()
                      if name in {row.name for row in rows})
    text = f"\n{summary(rows)}\n\n{HEAD}" + "\n".join(row.text() for row in rows) + f"\n\nOff, and why:\n{reasons}\n"
    if options.write:
        page = options.write.read_text()
        options.write.write_text(page.split(BEGIN)[0] + BEGIN + text + END + page.split(END)[1])
    else:
        print(text)
    faults = list(wrong(rows))
    print("\n".join(faults), file=sys.stderr)
    sys.exit(len(faults) > 0)


if __name__ == "__main__":
    main()
