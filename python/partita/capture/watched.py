"""Numbers and containers in attributes that forward changes in every call: may it, or does it look at them?

A counter that forward only adds to and a list that it only appends to are nobody's business. One that it compares or counts
could make the hundredth call another step than the first two.
"""

import collections

import torch

# What keeps different numbers different: used in a step, they show in its second call.
NUMBER_KEEPS = ("add", "radd", "sub", "mul", "rmul", "neg", "pos", "truediv", "rtruediv")
NUMBER_READS = ("lt", "le", "gt", "ge", "eq", "ne", "bool", "int", "float", "index", "hash", "floordiv", "rfloordiv", "mod", "rmod",
                "divmod", "pow", "rpow", "rsub", "and", "rand", "or", "ror", "xor", "rshift", "lshift", "abs", "round", "trunc",
                "floor", "ceil")
CONTAINER_READS = ("__len__", "__iter__", "__contains__", "__eq__", "__ne__", "__reversed__", "index", "count", "copy", "keys",
                   "values", "items", "setdefault", "__or__", "__add__", "__and__", "__sub__")
HANDS_OUT = ("__getitem__", "get", "pop", "popleft", "popitem")
CONTAINERS = (list, dict, set, collections.deque)


class Watch:
    """Puts watched copies of attributes into a module, and notes which of them are looked at."""

    def __init__(self, module: torch.nn.Module, names):
        self.read = []
        for path, part in module.named_modules():
            for name, value in list(vars(part).items()):
                full = f"{path}.{name}".lstrip(".")
                if full in names:
                    vars(part)[name] = self.watched(value, full)

    def watched(self, value, name):
        kind = type(value)
        if kind in (int, float):
            return self._number(value, name)
        if kind in CONTAINERS:
            return self._container(kind, value, name)
        return value

    def _number(self, value, name):
        kind = type(value)
        methods = {f"__{key}__": self._telling(kind, f"__{key}__", name) for key in NUMBER_READS if hasattr(kind, f"__{key}__")}
        methods |= {f"__{key}__": self._handing(kind, f"__{key}__", name) for key in NUMBER_KEEPS}
        return type(f"watched_{kind.__name__}", (kind,), methods)(value)

    def _container(self, kind, value, name):
        methods = {key: self._telling(kind, key, name) for key in CONTAINER_READS if hasattr(kind, key)}
        methods |= {key: self._handing(kind, key, name) for key in HANDS_OUT if hasattr(kind, key)}
        more = (value.maxlen,) if kind is collections.deque else ()
        return type(f"watched_{kind.__name__}", (kind,), methods)(value, *more)

    def _telling(self, kind, key, name):
        def tell(this, *args):
            self.read.append(name)
            return getattr(kind, key)(this, *args)

        return tell

    def _handing(self, kind, key, name):
        def hand(this, *args):
            made = getattr(kind, key)(this, *args)
            if not isinstance(made, (int, float, torch.Tensor)) and made is not NotImplemented:
                self.read.append(name)
            return self.watched(made, name)

        return hand
