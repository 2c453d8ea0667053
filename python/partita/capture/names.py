"""Names of ops: `module.path/op`, `module.path/op.k`, and `<forward op>.grad.j` for gradient ops."""

from collections import Counter

from .origins import op_name


def name_nodes(nodes) -> dict:
    """Returns {node: name}; unique, and the same for the same graph.

    Example: the second addmm of h.0.mlp is `h.0.mlp/addmm.1`, the first op of its gradient `h.0.mlp/addmm.1.grad.0`.
    """
    names, repeats, forward_names = {}, Counter(), {}
    for node in nodes:
        origin = node.meta["origin"]
        if origin.forward is None:
            names[node] = _numbered(f"{origin.path}/{op_name(node.target)}", repeats)
            forward_names.setdefault(origin, names[node])
    gradients = Counter()
    for node in nodes:
        forward = node.meta["origin"].forward
        if forward is not None:
            # A forward op that the clean-up dropped (an alias) still lends its name to its gradient.
            base = forward_names.get(forward) or f"{forward.path}/{forward.op}"
            names[node] = f"{base}.grad.{gradients[base]}"
            gradients[base] += 1
    return names


def _numbered(base, repeats):
    count = repeats[base]
    repeats[base] += 1
    return base if count == 0 else f"{base}.{count}"
