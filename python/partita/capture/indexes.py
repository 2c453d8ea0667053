"""Which values of a batch a step uses as an index, to be looked at before ranks start.

A bad token would otherwise end a rank in the middle of a step, with an error that names no token.
"""

from dataclasses import dataclass

import torch

from ..errors import InputError
from .ranges import INDEXES

aten = torch.ops.aten
IGNORED = {aten.nll_loss_forward.default: 4, aten.nll_loss2d_forward.default: 4}  # position of ignore_index
MOST_OPS = 40  # of one index; one that takes more to compute is left to the ranks


@dataclass
class Index:
    """One index of the step: how it comes from the batch, and how many rows it may name."""

    op: str
    inputs: list
    compute: torch.fx.GraphModule
    rows: int
    low: int
    ignored: int | None

    def check(self, batch: dict):
        with torch.no_grad():
            try:
                values = self.compute(*(batch[name].contiguous() for name in self.inputs))
            except RuntimeError:  # the captured batch lay otherwise in memory; the ranks will look
                return
        bad = (values < self.low) | (values >= self.rows)
        if self.ignored is not None:
            bad &= values != self.ignored
        if not bad.any():
            return
        value = int(values[bad].flatten()[0])
        place = _where(batch, self.inputs, value)
        raise InputError(f"batch {place}", f"it {'holds' if '[' in place else 'gives'} {value}, and {self.op} takes 0 to "
                         f"{self.rows - 1}{'' if self.ignored is None else f' or {self.ignored}'}",
                         "see that the tokenizer's vocabulary, or the number of classes, is the module's")


def _where(batch, inputs, value):
    for name in inputs:
        found = (batch[name] == value).nonzero()
        if len(found):
            return f"{name}[{', '.join(map(str, found[0].tolist()))}]"
    return " or ".join(inputs)


def find_indexes(graph: torch.fx.Graph, batch: dict, names: dict) -> list:
    """batch: placeholder -> name of a batch input. names: node -> the op's name in the model."""
    found, seen = [], set()
    for node in graph.nodes:
        for index, rows, low in _indexed(node):
            if (index, rows) in seen:
                continue
            seen.add((index, rows))
            needed = _ancestors(index, batch)
            if needed:
                inputs = [n for n in needed if n in batch]
                found.append(Index(names[node], [batch[n] for n in inputs], _part(needed, batch), rows, low,
                                   _ignored(node)))
    return found


def _indexed(node):
    if node.op != "call_function":
        return
    if node.target in INDEXES:
        position, table, dim = INDEXES[node.target]
        index, shape = node.args[position], node.args[table].meta["val"].shape
        if shape:
            yield index, shape[node.args[1] if dim is None else dim], 0
    elif node.target is aten.index.Tensor:
        for dim, index in enumerate(node.args[1]):
            if index is not None and not index.meta["val"].dtype == torch.bool:
                rows = node.args[0].meta["val"].shape[dim]
                yield index, rows, -rows


def _ignored(node):
    position = IGNORED.get(node.target)
    return node.args[position] if position is not None and len(node.args) > position else None


def _ancestors(index, batch):
    """The nodes that `index` is computed from, in order; none where it needs more than the batch."""
    needed, pending = set(), [index]
    while pending:
        node = pending.pop()
        if node in needed:
            continue
        if node.op not in ("placeholder", "call_function") or (node.op == "placeholder" and node not in batch):
            return []
        needed.add(node)
        if len(needed) > MOST_OPS:
            return []
        pending += node.all_input_nodes
    ordered = [node for node in index.graph.nodes if node in needed]
    return ordered if any(node in batch for node in ordered) else []


def _part(needed, batch):
    graph, copies = torch.fx.Graph(), {}
    for node in needed:
        copies[node] = graph.node_copy(node, copies.__getitem__)
    graph.output(copies[needed[-1]])
    return torch.fx.GraphModule({}, graph)
