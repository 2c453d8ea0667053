"""What whole numbers become where an op makes floating ones of them.

PyTorch takes the default dtype of the process, which may be another one where the step runs, and which no file says.
"""

import torch

aten = torch.ops.aten
CHOOSE = (aten.where.self, aten.where.ScalarOther, aten.where.ScalarSelf, aten.where.Scalar)  # they read truth values


def state_dtypes(graph: torch.fx.Graph):
    """Writes the cast down that such an op does by itself: whole numbers are cast first, to the dtype of its result."""
    for node in list(graph.nodes):
        if _takes_the_default(node):
            for operand in node.all_input_nodes:
                node.replace_input_with(operand, _cast(graph, node, operand))


def _takes_the_default(node):
    if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload) or node.target in CHOOSE:
        return False
    made, operands = node.meta.get("val"), [operand.meta.get("val") for operand in node.all_input_nodes]
    return (torch.Tag.pointwise in node.target.tags and isinstance(made, torch.Tensor) and made.is_floating_point()
            and node.kwargs.get("dtype") is None and bool(operands)
            and not any(value.is_floating_point() or value.is_complex() for value in operands))


def _cast(graph, node, operand):
    dtype = node.meta["val"].dtype
    with graph.inserting_before(node):
        cast = graph.call_function(aten._to_copy.default, (operand,), {"dtype": dtype})
    cast.meta = {**node.meta, "val": operand.meta["val"].to(dtype)}
    return cast
