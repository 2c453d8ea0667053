"""3F1B (SuperScaler): three forwards through the same weights, one backward, as AlphaFold 2's recycling has them."""

import partita


def three_f_one_b(model, devices, microbatches):
    """Every device holds one part of the weights and meets each micro-batch three times forward, once backward."""
    design = partita.design(model, ranks=devices).microbatches(microbatches)
    for stage, ops in enumerate(design.cut(3 * devices, passes=3)):
        design.assign(ops, [stage % devices])
    return design.order([order(device, devices, microbatches) for device in range(devices)]).plan()


def order(device, devices, microbatches):
    """One micro-batch enters as another leaves; a backward goes before any forward that could run as well."""
    ready = {}
    for batch in range(microbatches):
        start = 4 * devices * (batch // devices) + batch % devices
        for step in range(3):
            ready[start + step * devices + device, 1] = f"{step * devices + device}F{batch}"
        ready[start + 4 * devices - 1 - device, 0] = f"{2 * devices + device}B{batch}"
    return [ready[when] for when in sorted(ready)]
