"""Are two traces of one module the same step?"""

import operator

import torch

from .cached import Formulas, plain_constant


def constants_of(graph: torch.fx.GraphModule) -> dict:
    """By id what tells its constants from others now: forward may write to them later, as to arrays of numpy."""
    values = [getattr(graph, node.target) for node in graph.graph.find_nodes(op="get_attr")]
    return {id(value): plain_constant(value) for value in values}


def same_graph(one: torch.fx.GraphModule, constants: dict, other: torch.fx.GraphModule, kept: dict) -> bool:
    """The same calls in the same order with the same numbers and constants.

    constants: of `one`, as they were when it was traced.
    kept: by id the formulas of tensors that the first trace left in the module. A constant that is computed and one that was
    kept are the same where their formulas are.
    """
    rows, others = _rows(one, constants), _rows(other, kept)
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
