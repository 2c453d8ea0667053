"""Runs a `*.model.json` through torch.ops, one op at a time: the reference reader of the format."""

import json

import torch


def replay(text, values, constants=None):
    """values: {name of a parameter, buffer or batch input: tensor}. Returns (loss, {parameter: gradient},
    {buffer: new value}). Every made tensor must have the shape, strides and dtype the file says.
    """
    model = json.loads(text)
    values = {**values, **(constants or {})}
    tensors = [values[t["name"]] if "role" in t else None for t in model["tensors"]]
    with torch.no_grad():
        for op in model["ops"]:
            _run(op, tensors, model["tensors"])
    names = [t["name"] for t in model["tensors"]]
    gradients = {names[p]: tensors[g] for p, g in model["gradients"]}
    return tensors[model["loss"]], gradients, {names[b]: tensors[v] for b, v in model["buffers"]}


def _run(op, tensors, rows):
    namespace, name, overload = op["target"].split(".")
    call = getattr(getattr(getattr(torch.ops, namespace), name), overload)
    args = [_value(a, tensors) for a in op["args"]]
    result = call(*args, **{k: _value(a, tensors) for k, a in op.get("kwargs", {}).items()})
    results = list(result) if isinstance(result, (list, tuple)) else [result]
    assert len(results) == len(op["out"]), op["name"]
    for made, out in zip(results, op["out"]):
        if out is None:
            assert made is None, op["name"]
            continue
        found = {"shape": list(made.shape), "stride": list(made.stride()), "dtype": str(made.dtype)[len("torch."):]}
        assert found == {key: rows[out][key] for key in found}, op["name"]
        assert tensors[out] is None, f"{rows[out]['name']} is made twice"
        tensors[out] = made


def _value(argument, tensors):
    if isinstance(argument, list):
        return [_value(a, tensors) for a in argument]
    if not isinstance(argument, str):
        return argument
    if argument.startswith("%"):
        return tensors[int(argument[1:])]
    kind, _, text = argument.partition(":")
    return KINDS[kind](text)


KINDS = {"dtype": lambda t: getattr(torch, t), "layout": lambda t: getattr(torch, t),
         "memory_format": lambda t: getattr(torch, t), "device": torch.device, "str": str, "float": float}
