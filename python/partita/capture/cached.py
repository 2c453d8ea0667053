"""Tensors that forward computes from nothing but numbers, such as tables of positions that it keeps for the next call."""

import zlib

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.experimental.proxy_tensor import get_proxy_mode, get_proxy_slot
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_leaves

OWN = ("_parameters", "_buffers", "_modules")


class Formulas:
    """How the nodes of a graph that no input leads to are computed, as text; None for all others."""

    def __init__(self, constant_of):
        """constant_of: of a node that reads an attribute of the graph its text; None where it has none."""
        self.constant_of, self.known = constant_of, {}

    def __getitem__(self, node):
        pending = [node]
        while pending:
            last = pending[-1]
            inputs = [one for one in last.all_input_nodes if one not in self.known]
            if not inputs:
                self.known[pending.pop()] = self._formula(last)
            pending.extend(inputs)
        return self.known[node]

    def _formula(self, node):
        if node.op == "get_attr":
            return self.constant_of(node)
        if node.op != "call_function" or any(self.known[one] is None for one in node.all_input_nodes):
            return None
        arguments = torch.fx.map_arg((node.args, node.kwargs), lambda one: self.known[one])
        return f"{node.target}{arguments}"


def plain_constant(value):
    """What tells a tensor that has values from others; None for one that has none."""
    if isinstance(value, FakeTensor):
        return None
    with _disable_current_modes():
        flat = value.detach().contiguous().reshape(-1).view(torch.uint8)
        return f"{value.dtype}{list(value.shape)}{zlib.crc32(flat.numpy())}"


def kept_formulas(module: torch.nn.Module) -> dict:
    """By id the formula of every tensor in an attribute of `module` that no input of the step leads to.

    REQUIRES: the trace that made them runs still.
    """
    tracer = get_proxy_mode().tracer
    formulas = Formulas(lambda node: plain_constant(getattr(tracer.root, node.target)))
    held = [leaf for part in module.modules() for name, value in vars(part).items() if name not in OWN
            for leaf in tree_leaves(value) if isinstance(leaf, FakeTensor)]
    slots = {id(tensor): get_proxy_slot(tensor, tracer, None) for tensor in held}
    return {key: formulas[slot.proxy.node] for key, slot in slots.items() if slot is not None}
