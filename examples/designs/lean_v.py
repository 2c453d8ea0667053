"""Lean V: a plan of our own. A V-shaped pipeline that puts embedding, head and loss on device 0; there the layers run in
pieces, one after another, so that the device with the vocabulary keeps no more than the others; weight gradients
wait for the bubbles."""

import partita


def lean_v(model, devices, microbatches, pieces):
    design = partita.design(model, ranks=devices).microbatches(microbatches)
    parts = design.cut(2 * devices)
    for stage, ops in enumerate(parts):
        design.assign(ops, [min(stage, 2 * devices - 1 - stage)])
    layers = {name.split("/")[0].split(".h.")[1].split(".")[0] for name in parts[0] + parts[-1] if ".h." in name}
    for layer in sorted(layers):
        design.loop(f"h.{layer}.mlp", "hidden", pieces).recompute(f"h.{layer}.mlp")
    return design.order("zb-v").plan()
