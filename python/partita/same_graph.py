"""Are two traces of one module the same step?"""

import operator

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import _disable_current_modes


def same_graph(one: torch.fx.GraphModule, other: torch.fx.GraphModule) -> bool:
    """The same calls in the same order with the same numbers and constants."""
    with _disable_current_modes():
        return len(one.graph.nodes) == len(other.graph.nodes) and all(map(operator.eq, _rows(one), _rows(other)))


def _rows(graph):
    place = {node: number for number, node in enumerate(graph.graph.nodes)}
    for node in graph.graph.nodes:
        args = torch.fx.map_arg((node.args, node.kwargs), lambda n: f"%{place[n]}")
        yield node.op, _constant(getattr(graph, node.target)) if node.op == "get_attr" else str(node.target), repr(args)


def _constant(value):
    """What distinguishes a constant; one without values is never the same twice."""
    return repr(value.tolist()) if not isinstance(value, FakeTensor) else id(value)
