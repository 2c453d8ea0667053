"""Are two traces of one module the same step?"""

import operator

import torch

from .cached import Formulas, plain_constant


def same_graph(one: torch.fx.GraphModule, other: torch.fx.GraphModule, kept: dict) -> bool:
    """The same calls in the same order with the same numbers and constants.

    kept: by id the formulas of tensors that the first trace left in the module. A constant that is computed and one that was
    kept are the same where their formulas are.
    """
    rows, others = _rows(one, {}), _rows(other, kept)
    return len(rows) == len(others) and all(map(operator.eq, rows, others))


def _rows(graph, kept):
    def constant_of(node):
        value = getattr(graph, node.target)
        return kept.get(id(value)) or plain_constant(value)

    formulas, place, rows = Formulas(constant_of), {}, []
    for node in graph.graph.nodes:
        if formulas[node] is not None:
            continue
        place[node] = f"%{len(place)}"
        args = torch.fx.map_arg((node.args, node.kwargs), lambda n: formulas[n] or place[n])
        rows.append((node.op, "" if node.op == "get_attr" else str(node.target), repr(args)))
    return rows
