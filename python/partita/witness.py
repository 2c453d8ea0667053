"""A second witness: does a Program compute the step of its Model?

    python -m partita.witness MODEL.model.json PROGRAM.program.json ...

Reads the two files and nothing else of this project. It walks the ranks as the page of the format says, with numbers of
its own choice for parameters and batches (double precision, no two alike), and compares what every rank reports in
three steps with the Model's ops done one after another on whole tensors. A missing sum, a wrong piece or an old weight
changes numbers, whatever plan the Program came from. Memory is that of a runtime: views share it, what is made anew lies
in it as its type says, and what lasts stays in its slot or where it is reported. What numbers cannot show has its own
rules: nobody waits for ever, nothing is read before it is there or after it is gone, a copy on its way is left alone,
nothing stays behind, and all that training needs is reported. Exit 0: every Program is right; 3: one is not.
"""

import functools
import json
import math
import re
import sys

import torch

TOLERANCE = 1e-9  # of the largest element of its kind; sums in another order differ by about 1e-15
LAZY = ("aten._conj.default", "aten._neg_view.default")  # a bit beside the memory says it: runtimes copy
STEPS = 3  # the second shows what the first left behind, the third what the second did with states that are not zero


class Refused(Exception):
    """Why a Program is not what its Model says."""


def refuse(condition, text, *values):
    if condition:
        raise Refused(text.format(*values))


# Values: arguments, calls, and how tensors lie in memory.


def dtype_of(word):
    """Of numbers here: all that are not whole have double precision, whatever the file says."""
    dtype = getattr(torch, word)
    return torch.complex128 if dtype.is_complex else torch.float64 if dtype.is_floating_point else dtype


def in_doubles(work):
    """Ops that are not told a dtype make doubles, too."""
    @functools.wraps(work)
    def wrapped(*args, **kwargs):
        default = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)
        try:
            return work(*args, **kwargs)
        finally:
            torch.set_default_dtype(default)
    return wrapped


def argument(value, tensors):
    """A plain value, a list, a tensor ("%3") or a word with its kind in front."""
    if isinstance(value, list):
        return [argument(item, tensors) for item in value]
    if not isinstance(value, str):
        return value
    if value.startswith("%"):
        return tensors[int(value[1:])]
    kind, word = value.split(":", 1)
    if kind in ("float", "device"):
        return float(word) if kind == "float" else torch.device("cpu")
    return word if kind == "str" else dtype_of(word) if kind == "dtype" else getattr(torch, word)


def operands(args, kwargs):
    """The numbers of the tensors among the arguments, in order."""
    numbers, rest = [], [*args, *kwargs.values()]
    while rest:
        value = rest.pop(0)
        if isinstance(value, list):
            rest[:0] = value
        elif isinstance(value, str) and value.startswith("%"):
            numbers.append(int(value[1:]))
    return numbers


@functools.cache
def op_of(target):
    space, name, overload = target.split(".")
    return getattr(getattr(getattr(torch.ops, space), name), overload)


def call(target, args, kwargs, tensors):
    """The outputs of an op, as a list."""
    args = [argument(value, tensors) for value in args]
    kwargs = {name: argument(value, tensors) for name, value in kwargs.items()}
    if target == "aten.view.default":  # of a piece that is strided where the whole was dense
        return [args[0].reshape(args[1])]
    out = op_of(target)(*args, **kwargs)
    return list(out) if isinstance(out, (tuple, list)) else [out]


@functools.cache
def makes_view(target):
    """Does torch's schema say that outputs lie in the memory of an input?"""
    return target not in LAZY and any(made.alias_info is not None for made in op_of(target)._schema.returns)


def storage(value):
    """Equal for two names of one storage."""
    return value.untyped_storage()._cdata


def compact(shape, like):
    """Strides without gaps, dimensions in the order of those of `like`, largest first; expanded ones have no order."""
    order = range(len(shape)) if 0 in like else sorted(range(len(shape)), key=lambda d: (-like[d], d))
    strides, step = [0] * len(shape), 1
    for dim in reversed(order):
        strides[dim], step = step, step * max(shape[dim], 1)
    return strides


def lies_as(shape, strides, wanted):
    """Are these strides the wanted ones, where it matters?"""
    return 0 in shape or all(size == 1 or one == other for size, one, other in zip(shape, strides, wanted))


def shares_memory(value):
    """Do two elements of a tensor lie in one place?"""
    reach = 0
    for stride, size in sorted(zip(value.stride(), value.shape)):
        if size > 1 and stride <= reach:
            places = torch.arange(value.untyped_storage().nbytes() // value.element_size())
            return places.as_strided(value.shape, value.stride(), value.storage_offset()).unique().numel() < value.numel()
        reach += stride * (size - 1)
    return False


# Optimizers.


def optimizer_of(program):
    """The optimizer: `numbers` by settings, how many states it has, its loss scale, and whether it needs the norm."""
    own = {"dampening": 0, "nesterov": False, "clip": 0, **program["optimizer"]}
    name, groups, precision = own["name"], own.pop("groups", []), program.get("precision", {})
    numbers = [{**own, "params": []}] + [{**own, **group} for group in groups]
    states = {"adamw": 2, "adam": 2, "sgd": int(any(by["momentum"] for by in numbers))}.get(name, 0)
    scale, clip = precision.get("loss_scale", 0), own["clip"]
    refuse(scale and name == "none", "has a loss scale, which no optimizer takes out of the gradients")
    return {"name": name, "numbers": numbers, "states": states, "scale": scale, "clip": clip,
            "master": precision.get("master"), "norm": name != "none" and (clip > 0 or scale > 0)}


def updated_dtype(spec, own):
    """Of the copy of a parameter that is updated: its master copy, where that has more bits."""
    return max(own, spec["master"] or own, key=lambda word: getattr(torch, word).itemsize)


def settings_of(spec, name):
    """Which numbers update the parameter of this name: the first group that names it, or 0."""
    name = re.sub(r"\.part\.\d+$", "", name)  # a piece of a packed parameter goes by the name of the whole
    for number, group in enumerate(spec["numbers"]):
        for pattern in group["params"]:
            if re.fullmatch(".*".join(re.escape(part) for part in pattern.split("*")), name):
                return number
    return 0


def clip_factor(spec, squares, scale):
    """What torch.nn.utils.clip_grad_norm_ multiplies gradients with; the loss scale is taken out."""
    norm = math.sqrt(squares) / scale
    return (min(1.0, spec["clip"] / (norm + 1e-6)) if spec["clip"] > 0 else 1.0) / scale


def update(spec, by, step, parameter, gradient, states):
    """Changes parameter and states in place, by AdamW, Adam or SGD of torch.optim; step counts from 1."""
    rate, decay = by["lr"], by["weight_decay"]
    if spec["name"] == "adamw":
        parameter.mul_(1 - rate * decay)
    else:
        gradient = gradient + decay * parameter
    if spec["name"] == "sgd":
        parameter.sub_(rate * (descend(by, step, gradient, *states) if by["momentum"] else gradient))
        return
    first, second = states
    first.mul_(by["beta1"]).add_((1 - by["beta1"]) * gradient)
    second.mul_(by["beta2"]).add_((1 - by["beta2"]) * gradient * gradient)
    scale = (second / (1 - by["beta2"] ** step)).sqrt() + by["eps"]
    parameter.sub_(rate / (1 - by["beta1"] ** step) * first / scale)


def descend(by, step, gradient, momentum):
    """The direction of SGD with momentum, which changes in place."""
    if step == 1:
        momentum.copy_(gradient)
    else:
        momentum.mul_(by["momentum"]).add_((1 - by["dampening"]) * gradient)
    return gradient + by["momentum"] * momentum if by["nesterov"] else momentum


# The reference.


class Reference:
    """What the step is: inputs of every step, what it gives, and what lasts to the next.

    `before[k]` is what step k starts with (before[STEPS] is what the last one leaves), `states[k]` the optimizer's states
    by parameter, `after[k]` what step k must report by tensor, `squares[k]` of the norm of all gradients.
    """

    @in_doubles
    def __init__(self, model, spec, seed=1):
        self.model, self.spec = model, spec
        self.ids = {tensor["name"]: i for i, tensor in enumerate(model["tensors"])}
        self.ops = {op["name"]: op for op in model["ops"]}
        self.gradient_of = {parameter: gradient for parameter, gradient in model["gradients"]}
        self.new_value_of = {buffer: value for buffer, value in model["buffers"]}
        self.batch = {i for i, tensor in enumerate(model["tensors"]) if tensor.get("role") == "batch"}
        self.trains = spec["name"] != "none"
        self.random = torch.Generator().manual_seed(seed)
        kept = self.drawn("parameter", "buffer", "constant")
        states = {p: [torch.zeros_like(kept[p]) for _ in range(spec["states"])] for p in self.gradient_of}
        self.before, self.states, self.after, self.squares = [], [], [], []
        for step in range(STEPS + 1):
            self.before.append({**kept, **self.drawn("batch")})
            self.states.append({p: [state.clone() for state in states[p]] for p in states})
            if step < STEPS:
                kept = self.take_step(step, kept, states)
        if spec["scale"]:
            self.check_scalable()

    def drawn(self, *roles):
        return {i: self.draw(t) for i, t in enumerate(self.model["tensors"]) if t.get("role") in roles}

    def draw(self, tensor):
        shape, dtype, role, random = tensor["shape"], dtype_of(tensor["dtype"]), tensor["role"], self.random
        if not dtype.is_floating_point:
            value = torch.randint(*tensor.get("range", [0, 2]), shape, generator=random).to(dtype)
            if tensor["name"] == "labels":  # some count for nothing, more of them in later samples
                share = torch.linspace(0.1, 0.6, shape[0]).reshape([-1] + [1] * (len(shape) - 1))
                ignored = torch.rand(shape, generator=random) < share
                ignored.view(-1)[:1] = False
                value[ignored] = -100
        elif role in ("buffer", "constant"):  # a step may divide by them, or take their root
            value = torch.rand(shape, generator=random, dtype=dtype) + 0.5
        else:
            value = torch.randn(shape, generator=random, dtype=dtype)
            if role == "parameter":
                value = 0.1 * value + (1.0 if len(shape) == 1 and tensor["name"].endswith("weight") else 0.0)
        return torch.empty_strided(shape, compact(shape, tensor["stride"]), dtype=value.dtype).copy_(value)

    def take_step(self, step, kept, states):
        """What the next step starts with."""
        made = self.run(dict(self.before[step]))
        values = {i: made[i] for i in [self.model["loss"], *self.gradient_of.values()]}
        kept = {i: value.clone() for i, value in kept.items()}
        for buffer, value in self.new_value_of.items():
            kept[buffer] = made[value].clone()
        refuse(not all(value.isfinite().all() for value in values.values()),
               "the numbers drawn for {} do not give a finite loss and gradients", self.model["name"])
        # A gradient that two parameters share counts for both.
        self.squares.append(sum(float((values[g] ** 2).sum()) for g in self.gradient_of.values()))
        if self.spec["norm"]:
            factor = clip_factor(self.spec, self.squares[step], 1.0)
            values.update({g: values[g] * factor for g in set(self.gradient_of.values())})
        for parameter, gradient in self.gradient_of.items() if self.trains else ():
            by = self.spec["numbers"][settings_of(self.spec, self.model["tensors"][parameter]["name"])]
            update(self.spec, by, step + 1, kept[parameter], values[gradient], states[parameter])
        self.after.append({**values, **kept})
        return kept

    def run(self, values, doubled=-1):
        """All values of a step; of one tensor twice what its op makes."""
        for op in self.model["ops"]:
            for out, value in zip(op["out"], call(op["target"], op["args"], op.get("kwargs", {}), values)):
                values[out] = value * 2 if out == doubled else value
        return values

    def check_scalable(self):
        """A loss scale is taken out of the gradients again: they grow as the gradient of the loss does, and nothing else."""
        once, gradients = self.run(dict(self.before[0])), set(self.gradient_of.values())
        ones = [op["out"][0] for op in self.model["ops"]
                if op.get("backward") and op["target"] in ("aten.ones_like.default", "aten.full.default")]
        for seed in [self.model["seed"]] if "seed" in self.model else ones:
            twice = self.run(dict(self.before[0]), doubled=seed)
            if all(same(twice[g], once[g] * 2) for g in gradients) and all(
                    same(twice[value], once[value]) for value in self.new_value_of.values()):
                return
        raise Refused("has a loss scale, but gradients or buffers do not go with the gradient of the loss")

    def tensor(self, name):
        refuse(name not in self.ids, "the model has no tensor {}", name)
        return self.model["tensors"][self.ids[name]]


# Boxes of whole tensors, and cuts of pieces.


def leaves_of(program, reference):
    """Sizes of the leaves of every dimension of loaded and reported tensors: what their boxes reach."""
    sizes = {}
    for entry in (entry for rank in program["ranks"] for entry in rank["loads"] + rank["results"]):
        name, box = entry["tensor"], entry["box"]
        shape = reference.tensor(name)["shape"]
        refuse(len(box) != len(shape), "{} has the box {}", name, box)
        dims = sizes.setdefault(name, [[size] if len(dim) == 1 else [0] * len(dim) for size, dim in zip(shape, box)])
        refuse([len(dim) for dim in dims] != [len(dim) for dim in box], "boxes of {} have different leaves", name)
        refuse(any(begin < 0 or begin > end for dim in box for begin, end in dim), "{} has the box {}", name, box)
        sizes[name] = [[max(size, end) for size, (_, end) in zip(*both)] for both in zip(dims, box)]
    for name, dims in sizes.items():
        whole = reference.tensor(name)["shape"]
        refuse([math.prod(dim) for dim in dims] != whole, "boxes of {} reach {}, it is {}", name, dims, whole)
    return sizes


def boxed(value, leaves, box):
    """This box of a whole tensor."""
    cut = value.reshape([size for dim in leaves for size in dim])
    for axis, (begin, end) in enumerate(interval for dim in box for interval in dim):
        cut = cut.narrow(axis, begin, end - begin)
    return cut.reshape([math.prod(end - begin for begin, end in dim) for dim in box])


def opened(value, cut):
    """A tensor with the cut dimension read as (outer, length, inner); the length is dimension `dim` + 1."""
    dim, _, outer, inner = cut
    refuse(outer * inner < 1 or value.shape[dim] % (outer * inner), "cuts {} as {}", list(value.shape), cut)
    return value.reshape(value.shape[:dim] + (outer, value.shape[dim] // (outer * inner), inner) + value.shape[dim + 1:])


def slice_of(value, cut, begin, length):
    whole = opened(value, cut)
    refuse(begin < 0 or length < 0 or begin + length > whole.shape[cut[0] + 1], "slices [{}, {}) of {}", begin,
           begin + length, list(value.shape))
    return whole.narrow(cut[0] + 1, begin, length).flatten(cut[0], cut[0] + 2)


def joined(values, cut, pieces):
    parts = [opened(value, cut) for value in values]
    refuse([part.shape[cut[0] + 1] for part in parts] != pieces, "joins other lengths than {}", pieces)
    return torch.cat(parts, cut[0] + 1).flatten(cut[0], cut[0] + 2)


# A rank and its memory.


class Memory:
    """The slots of a rank. Names of one storage share it, as in a runtime."""

    def __init__(self, number, types):
        self.number, self.types = number, types
        self.slots = {}      # (slot, micro-batch) -> tensor; None: a receive is on its way
        self.sending = {}    # storage -> sends on their way

    def key(self, slot, microbatch):
        return slot, microbatch if slot[0] == "f" else 0

    def read(self, slot, microbatch):
        key = self.key(slot, microbatch)
        refuse(key not in self.slots, "rank {} reads {}, which holds nothing", self.number, slot)
        refuse(self.slots[key] is None, "rank {} reads {} before it has arrived", self.number, slot)
        return self.slots[key]

    def write(self, slot, microbatch, value, over=None):
        key = self.key(slot, microbatch)
        refuse(key in self.slots and slot != over, "rank {} writes {}, which still holds something", self.number, slot)
        self.slots[key] = value

    def drop(self, slot, microbatch):
        key = self.key(slot, microbatch)
        refuse(key not in self.slots, "rank {} frees {}, which holds nothing", self.number, slot)
        value = self.slots.pop(key)
        refuse(value is None, "rank {} frees {} while it arrives", self.number, slot)
        if self.sending.get(storage(value)):
            refuse(all(other is None or storage(other) != storage(value) for other in self.slots.values()),
                   "rank {} frees {} while it is sent", self.number, slot)

    def change(self, value, slot):
        refuse(self.sending.get(storage(value)), "rank {} changes {} while it is sent", self.number, slot)
        refuse(shares_memory(value), "rank {} changes {} in place, whose elements share memory", self.number, slot)

    def typed(self, value, number):
        """The value, marked with the dtype that the file gives it: here all have double precision."""
        dtype, shape, _ = self.types[number]
        refuse(value.dtype != dtype_of(dtype) or list(value.shape) != shape or getattr(value, "word", dtype) != dtype,
               "rank {} makes {} {}, promised {} {}", self.number, getattr(value, "word", value.dtype), list(value.shape),
               dtype, shape)
        value.word = dtype
        return value

    def laid(self, value, number):
        """A copy that lies in memory as its type says, as all do that no op makes."""
        _, shape, strides = self.types[number]
        refuse(not lies_as(shape, strides, compact(shape, strides)),
               "rank {} makes {} with strides {}, which leave gaps or overlap", self.number, shape, strides)
        refuse(list(value.shape) != shape, "rank {} makes {}, promised {}", self.number, list(value.shape), shape)
        made = self.typed(torch.empty_strided(shape, strides, dtype=value.dtype).copy_(value), number)
        made.is_laid = True
        return made

    def check_word(self, word, number):
        refuse(word != self.types[number][0], "rank {} makes {} of {}", self.number, self.types[number][0], word)


class Rank(Memory):
    """One rank: a generator that stops where it must wait for others."""

    def __init__(self, number, checker):
        super().__init__(number, checker.program["types"])
        self.checker, self.reference, self.spec = checker, checker.reference, checker.spec
        self.program = checker.program["ranks"][number]
        self.open = {}       # (sending, slot, micro-batch, peer, tag) -> transfers begun and not waited for
        self.started = {}    # key of the output -> input, type and outcome of a collective not waited for

    def walk(self):
        for action in self.program["actions"]:
            if action[0] == "run":
                yield from self.run(self.checker.program["bodies"][action[1]], action[2])
            elif action[0] == "free":
                self.drop(action[1], action[2])
            else:
                yield from self.transfer(*action)

    def transfer(self, kind, slot, microbatch, peer, tag, type_number=None):
        sending = kind in ("send", "wait_send")
        channel = (self.number, peer, tag) if sending else (peer, self.number, tag)
        begun = self.open.setdefault((sending, slot, microbatch, peer, tag), [])
        if kind == "send":
            value = self.read(slot, microbatch)
            self.sending[storage(value)] = self.sending.get(storage(value), 0) + 1
            begun.append(self.checker.meet(channel, "sent", (value.clone(), storage(value), value.word)))
        elif kind == "post_receive":
            self.write(slot, microbatch, None)
            begun.append(self.checker.meet(channel, "expected", type_number))
        else:
            while not begun or len(self.checker.transfers[channel][begun[0]]) < 2:
                yield f"{kind} of {slot} of micro-batch {microbatch}, peer {peer}, tag {tag}"
            parcel = self.checker.transfers[channel][begun.pop(0)]
            if sending:
                self.sending[parcel["sent"][1]] -= 1
            else:
                self.check_word(parcel["sent"][2], parcel["expected"])
                self.slots[self.key(slot, microbatch)] = self.laid(parcel["sent"][0], parcel["expected"])

    def run(self, body, microbatch):
        for instr in body["instrs"]:
            if "group" in instr:
                group = self.program["groups"][instr["group"]]
                arrival = self.checker.arrive(self.number, instr, group, self.read(instr["in"][0], microbatch))
                while "out" not in arrival:
                    yield f"{instr['do']} over {group}"
                self.start(instr, microbatch, arrival["out"][self.number])
                if not instr.get("later"):
                    self.wait(instr["out"][0], microbatch)
            elif instr["do"] == "wait":
                self.wait(instr["in"][0], microbatch)
            else:
                self.compute(instr, microbatch)
            for slot in instr.get("drop", []):
                self.drop(slot, microbatch)
        left = [slot for slot, _ in self.slots if slot[0] == "l"]
        refuse(left, "rank {} leaves {} behind in {}", self.number, left, body["name"])

    def start(self, instr, microbatch, outcome):
        """Until the wait its input is sent and its output arrives; who reads a sum in place reads nonsense."""
        (slot,), (out,), in_place = instr["in"], instr["out"], instr["do"] == "all_reduce"
        value = self.read(slot, microbatch)
        if in_place:
            self.change(value, slot)
            value.fill_(math.nan if value.is_floating_point() else -1)
        self.sending[storage(value)] = self.sending.get(storage(value), 0) + 1
        self.write(out, microbatch, None, over=slot if in_place else None)
        self.check_word(value.word, instr["types"][0])
        made = value if in_place else self.laid(outcome, instr["types"][0])
        self.started[self.key(out, microbatch)] = value, made, outcome

    def wait(self, slot, microbatch):
        key = self.key(slot, microbatch)
        refuse(key not in self.started, "rank {} waits for {}, which nobody makes", self.number, slot)
        value, made, outcome = self.started.pop(key)
        self.sending[storage(value)] -= 1
        self.slots[key] = made.copy_(outcome) if made is value else made

    def compute(self, instr, microbatch):
        """An instruction of this rank alone. Its outputs are new, views of an input, or an input that it changed."""
        do, values = instr["do"], [self.read(slot, microbatch) for slot in instr["in"]]
        into = instr.get("into", 0 if do in IN_PLACE else None)
        if into is not None:
            self.change(values[into], instr["in"][into])
            self.check_apart(instr, values, into)
        for value in values if do in ("slice", "concat") else ():
            self.check_word(value.word, instr["types"][0])
        if do in NEW:
            made = [self.laid(NEW[do](instr, values, self.types[instr["types"][0]]), instr["types"][0])]
        elif do in IN_PLACE:
            made = [IN_PLACE[do](self, instr, values)]
        else:
            made = values if do == "move" else self.call_op(instr, values)
        if "into" in instr:
            made = [add(values[into], self.typed(made[0], instr["types"][0]))]
        over = None if into is None else instr["in"][into]
        for at, (slot, value) in enumerate(zip(instr["out"], made)):
            if slot is not None:
                self.write(slot, microbatch, self.typed(value, instr["types"][at]) if "types" in instr else value, over)

    def check_apart(self, instr, values, into):
        """What changes is read under no other name: kernels read and write in an order of their own."""
        for at, value in enumerate(values):
            refuse(at != into and storage(value) == storage(values[into]),
                   "rank {} reads {}, which shares its storage with {}, which it changes", self.number, instr["in"][at],
                   instr["in"][into])

    def call_op(self, instr, values):
        refuse(instr["op"] not in self.reference.ops, "the model has no op {}", instr["op"])
        op, kwargs = self.reference.ops[instr["op"]], instr.get("kwargs", {})
        marked = instr.get("view", False)
        if marked != makes_view(op["target"]):
            raise Refused(f"{op['name']} is marked as a view, but makes a new tensor" if marked else
                          f"{op['name']} makes a view, but is not marked as one")
        refuse(marked and instr["args"][0] != "%0", "{} is a view of its first operand, which must be the first input",
               op["name"])
        self.check_operands(op, operands(instr["args"], kwargs), values)
        made = call(op["target"], instr["args"], kwargs, values)
        return made if marked else apart(op, values, made)

    def check_operands(self, op, numbers, values):
        """They have the dtypes of the Model's; and what no op made lies in memory as they do: kernels may not look."""
        for number, at in zip(numbers, operands(op["args"], op.get("kwargs", {}))):
            value, tensor = values[number], self.reference.model["tensors"][at]
            refuse(value.word != tensor["dtype"], "rank {}: {} reads {} as {}", self.number, op["name"], tensor["name"],
                   value.word)
            self.check_strides(value, tensor, op["name"] + " reads")

    def check_strides(self, value, tensor, doing):
        if hasattr(value, "is_laid") and len(value.shape) == len(tensor["shape"]):
            wanted = compact(value.shape, tensor["stride"])
            refuse(not lies_as(value.shape, value.stride(), wanted), "rank {}: {} {} with strides {}, needs {}", self.number,
                   doing, tensor["name"], list(value.stride()), wanted)

    def scale(self, instr, values):
        refuse(not self.spec["scale"], "rank {} scales, but the program has no loss scale", self.number)
        refuse(not (values[0] == 1).all(), "rank {} scales {}, which is not the gradient of the loss", self.number,
               instr["in"][0])
        return values[0].mul_(self.checker.scale)

    def squares(self, instr, values):
        refuse(values[0].word != "float64" or values[0].dim() > 0, "rank {} keeps a sum of squares as {} {}", self.number,
               values[0].word, list(values[0].shape))
        return values[0].add_((values[1] ** 2).sum())

    def norm(self, value, slot):
        """The squares of all gradients, times the loss scale."""
        wanted = self.reference.squares[self.checker.step] * self.checker.scale ** 2
        refuse(not math.isclose(float(value), wanted, rel_tol=TOLERANCE, abs_tol=1e-300),
               "rank {} takes {} for the squares of all gradients, they are not", self.number, slot)
        return float(value)

    def clip(self, instr, values):
        return values[0].mul_(clip_factor(self.spec, self.norm(values[1], instr["in"][1]), self.checker.scale))

    def optimize(self, instr, values):
        spec, count, slots = self.spec, self.spec["states"], instr["in"]
        refuse(not self.reference.trains, "rank {} updates {}, but there is no optimizer", self.number, slots[0])
        if spec["norm"]:
            self.norm(values[-1], slots[-1])
        changing, own = values[2:len(values) - spec["norm"]], values[0].word
        master = updated_dtype(spec, own) != own
        refuse(len(changing) != count + master, "rank {} updates {} with {} states", self.number, slots[0], len(changing))
        for value, slot in zip([values[1], *changing], slots[1:]):
            refuse(value.shape != values[0].shape or value.word != updated_dtype(spec, own),
                   "rank {} updates {} {} {} with {} {} {}", self.number, slots[0], own, list(values[0].shape), slot,
                   value.word, list(value.shape))
        for value, slot in zip(changing, slots[2:]):
            self.change(value, slot)
        target = changing[count] if master else values[0]
        by = spec["numbers"][instr.get("settings", 0)]
        update(spec, by, self.checker.step + 1, target, values[1], changing[:count])
        return values[0] if target is values[0] else values[0].copy_(target)


def add(first, second):
    refuse(first.shape != second.shape or first.word != second.word, "adds {} {} to {} {}", second.word, list(second.shape),
           first.word, list(first.shape))
    return first.add_(second)


def apart(op, values, made):
    """A runtime copies what an op returns of its inputs although its schema does not say so; torch's own do not."""
    taken = {storage(value) for value in values}
    for at, value in enumerate(made):
        if value is not None and storage(value) in taken:
            owned = op["target"].startswith("aten.") and op["target"] not in LAZY
            refuse(owned, "{} makes a view, but is not marked as one", op["name"])
            made[at] = value.clone()
        if value is not None:
            taken.add(storage(made[at]))
    return made


NEW = {  # of the inputs v; the type is the promised one
    "slice": lambda instr, v, type: slice_of(v[0], instr["cut"], instr["begin"], instr["length"]),
    "concat": lambda instr, v, type: joined(v, instr["cut"], instr["pieces"]),
    "zeros": lambda instr, v, type: torch.zeros(type[1], dtype=dtype_of(type[0])),
    "cast": lambda instr, v, type: v[0].to(dtype_of(type[0])),
}
IN_PLACE = {  # change the first of the inputs v
    "add": lambda rank, instr, v: add(*v),
    "squares": Rank.squares,
    "scale": Rank.scale,
    "clip": Rank.clip,
    "optimize": Rank.optimize,
}


# What lasts from step to step.


class Lasting:
    """Where the loads of a rank come from when a step begins, as a runtime decides it.

    Before the first step everything is cut out of whole tensors, and batches always are. Later a parameter or buffer is
    taken from the result that reports its box on this rank; it is put together from the results of others where there is
    none; and what no result names is in its slot still, or, where the Program let go of it, cut out once more.
    """

    def __init__(self, rank, leaves):
        self.rank, self.reference, self.leaves = rank, rank.reference, leaves
        self.loads = [(entry, self.check(entry)) for entry in rank.program["loads"]]
        self.gone = self.replaced()
        self.updated = {entry["tensor"] for other in rank.checker.program["ranks"] for entry in other["results"]
                        if entry["kind"] in ("parameter", "buffer")}

    def check(self, entry):
        """The number of the tensor."""
        rank, name, state, slot = self.rank.number, entry["tensor"], entry.get("state", -1), entry["slot"]
        tensor, (dtype, shape, strides) = self.reference.tensor(name), self.rank.types[entry["type"]]
        number = self.reference.ids[name]
        refuse("role" not in tensor, "rank {} loads {}, which the step must compute", rank, name)
        refuse(tensor["role"] != "batch" and slot[0] != "r", "rank {} loads {} for one micro-batch, but it lasts", rank, name)
        refuse(state >= 0 and number not in self.reference.gradient_of, "rank {} loads a state of {}, which is not trained",
               rank, name)
        updated = updated_dtype(self.rank.spec, tensor["dtype"])
        master = updated != tensor["dtype"]
        refuse(state >= self.rank.spec["states"] + master, "rank {} loads state {} of {}", rank, state, name)
        needed = tensor["dtype"] if state < 0 else updated
        refuse(dtype != needed, "rank {} loads {} as {}, needs {}", rank, name, dtype, needed)
        wanted = compact(shape, tensor["stride"])
        refuse(len(shape) != len(tensor["shape"]) or not lies_as(shape, strides, wanted),
               "rank {} loads {} with strides {}, needs {}", rank, name, strides, wanted)
        return number

    def replaced(self):
        """Slots that do not hold at the end of a step what they held at its beginning."""
        slots, bodies = set(), {action[1] for action in self.rank.program["actions"] if action[0] == "run"}
        for instr in (instr for body in bodies for instr in self.rank.checker.program["bodies"][body]["instrs"]):
            slots.update(instr["out"] + instr.get("drop", []))
        return slots | {action[1] for action in self.rank.program["actions"] if action[0] in ("free", "post_receive")}

    def begin(self, step):
        """Fills the slots for this step; refuses if what lasted is not what it should be.

        A part that lasts and is loaded twice is one storage: a runtime takes both from one place.
        """
        held, self.rank.slots, taken, shared = self.rank.slots, {}, set(), {}
        for entry, number in self.loads:
            key = self.rank.key(entry["slot"], entry.get("microbatch", 0))
            refuse(key in self.rank.slots, "rank {} loads {} twice", self.rank.number, entry["slot"])
            value = self.lasted(entry, number, held) if step > 0 and number not in self.reference.batch else None
            wanted = self.wanted(entry, number, step) if number in self.reference.before[step] else None
            if value is not None:
                self.compare(entry, number, value, wanted)
                value = self.rank.typed(value.clone(), entry["type"]) if storage(value) in taken else value
                taken.add(storage(value))
            value = self.rank.laid(wanted, entry["type"]) if value is None else value
            part = None if number in self.reference.batch else (entry["tensor"], entry.get("state", -1), str(entry["box"]))
            self.rank.slots[key] = value if part is None else shared.setdefault(part, value)
        self.check_left(held)

    def wanted(self, entry, number, step):
        state, whole = entry.get("state", -1), self.reference.before[step][number]
        if 0 <= state < self.rank.spec["states"]:  # the one after the last is the master copy
            whole = self.reference.states[step][number][state]
        return boxed(whole, self.leaves[entry["tensor"]], entry["box"])

    def lasted(self, entry, number, held):
        """What a runtime finds of the last step; None: it cuts the load out of a whole."""
        slot, name, state = entry["slot"], entry["tensor"], entry.get("state", -1)
        trained = self.reference.trains and number in self.reference.gradient_of
        if state >= 0:
            refuse(slot in self.gone, "rank {} drops or replaces state {} of {}; it must stay in its slot", self.rank.number,
                   state, name)
        elif name in self.updated:
            for result in self.rank.program["results"]:
                if result["kind"] in ("parameter", "buffer") and (result["tensor"], result["box"]) == (name, entry["box"]):
                    return held[result["slot"], 0]
            return held.get((slot, 0), torch.tensor(math.nan)) if trained else None
        return held.get((slot, 0))

    def compare(self, entry, number, value, wanted):
        name, state = entry["tensor"], entry.get("state", -1)
        if value.shape == wanted.shape and same(value, wanted):
            return
        if self.reference.trains and number in self.reference.gradient_of:
            raise Refused(f"rank {self.rank.number}: {'' if state < 0 else f'state {state} of '}{name} is never updated")
        raise Refused(f"rank {self.rank.number}: {name} lasts to the next step, but {entry['slot']} holds something else")

    def check_left(self, held):
        rank, loads, results = self.rank, self.rank.program["loads"], self.rank.program["results"]
        refuse(any(rank.open.values()) or any(rank.sending.values()), "rank {} never waits for a transfer", rank.number)
        known = {rank.key(e["slot"], e.get("microbatch", 0)) for e in loads} | {(e["slot"], 0) for e in results}
        for slot, microbatch in held:
            refuse((slot, microbatch) not in known, "rank {} leaves {} behind", rank.number, slot)


# All ranks together.


class Checker:
    """Walks a Program beside its Model; REQUIRES a Reference of the same model."""

    def __init__(self, program, reference):
        self.program, self.reference, self.spec = program, reference, reference.spec
        refuse(optimizer_of(program) != self.spec, "the program updates by other numbers than the reference")
        self.leaves = leaves_of(program, reference)
        self.ranks = [Rank(number, self) for number in range(len(program["ranks"]))]
        self.lasting = [Lasting(rank, self.leaves) for rank in self.ranks]
        self.check_slots()
        self.check_types()
        self.check_covered()

    def check(self):
        for self.step in range(STEPS):
            self.begin(self.step)
            self.scale = self.spec["scale"] * 2 ** self.step or 1.0  # a runtime changes it from step to step
            self.transfers, self.counts, self.standing = {}, {}, {}
            self.walk()
            self.compare()
        self.begin(STEPS)

    def begin(self, step):
        for lasting in self.lasting:
            lasting.begin(step)

    # Transfers and collectives.

    def meet(self, channel, end, value):
        """The k-th send of a channel and its k-th receive are one transfer: its number."""
        number = self.counts[channel, end] = self.counts.get((channel, end), -1) + 1
        self.transfers.setdefault(channel, {}).setdefault(number, {})[end] = value
        return number

    def arrive(self, rank, instr, group, value):
        """A member of a collective has come; the last one finds its outcome for all."""
        arrival = self.standing[rank] = {"instr": instr, "group": group, "value": value}
        members = [self.standing.get(other) for other in group]
        if all(m and m["group"] == group and m["instr"]["do"] == instr["do"] for m in members):
            outcome = self.outcome(instr, members)
            for other, member in zip(group, members):
                del self.standing[other]
                member["out"] = dict(zip(group, outcome))
        return arrival

    def outcome(self, instr, members):
        """What each member gets, in group order."""
        values, do = [member["value"] for member in members], instr["do"]
        for key in ("cut", "pieces", "scatter", "shares"):
            refuse(any(member["instr"].get(key) != instr.get(key) for member in members), "{} with different {}", do, key)
        refuse(len({value.word for value in values}) > 1, "members of {} bring different dtypes", do)
        if do in ("all_gather", "all_to_all"):
            whole = joined(values, instr["cut"], instr["pieces"])
        else:
            refuse(any(v.shape != values[0].shape for v in values), "members of {} bring different shapes", do)
            whole = sum(values[1:], values[0].clone())
        if do in ("all_gather", "all_reduce"):
            return [whole] * len(values)
        cut, pieces = (instr[key] for key in (("scatter", "shares") if do == "all_to_all" else ("cut", "pieces")))
        refuse(len(pieces) != len(values) or sum(pieces) != opened(whole, cut).shape[cut[0] + 1], "scatters {}", pieces)
        return [slice_of(whole, cut, sum(pieces[:i]), pieces[i]) for i in range(len(pieces))]

    def walk(self):
        walks, stuck, before = {rank.number: rank.walk() for rank in self.ranks}, {}, None
        while walks and before != self.progress(walks):
            before = self.progress(walks)
            stuck = {number: next(walk, None) for number, walk in walks.items()}
            walks = {number: walk for number, walk in walks.items() if stuck[number]}
        refuse(walks, "deadlock: {}", "; ".join(f"rank {n} waits for {stuck[n]}" for n in walks))

    def progress(self, walks):
        standing = {number: id(arrival["instr"]) for number, arrival in self.standing.items()}
        return len(walks), sum(self.counts.values()), len(self.counts), standing

    def check_slots(self):
        """A runtime has as many as the file says."""
        for body in self.program["bodies"]:
            for slot in (slot for instr in body["instrs"] for slot in instr["in"] + instr["out"] if slot and slot[0] == "l"):
                refuse(int(slot[1:]) >= body["locals"], "{} has no slot {}", body["name"], slot)
        for number, rank in enumerate(self.program["ranks"]):
            bodies = [self.program["bodies"][action[1]] for action in rank["actions"] if action[0] == "run"]
            used = {slot for body in bodies for instr in body["instrs"] for slot in instr["in"] + instr["out"] if slot}
            used |= {entry["slot"] for entry in rank["loads"] + rank["results"]}
            used |= {action[1] for action in rank["actions"] if action[0] != "run"}
            limits = {"r": rank["rank_slots"], "f": rank["frame_slots"]}
            for slot in used:
                refuse(int(slot[1:]) >= limits.get(slot[0], math.inf), "rank {} has no slot {}", number, slot)

    def check_types(self):
        """Of what ops make. Here all have double precision, and kernels decide how results lie: no number would show it."""
        for instr in (instr for body in self.program["bodies"] for instr in body["instrs"] if instr["do"] == "compute"):
            outputs = self.reference.ops[instr["op"]]["out"] if instr["op"] in self.reference.ops else []
            for number, at in zip(instr.get("types", []), outputs):
                if number is None or at is None:
                    continue
                (dtype, shape, strides), tensor = self.program["types"][number], self.reference.model["tensors"][at]
                refuse(dtype != tensor["dtype"], "{} makes {}, promised {}", instr["op"], tensor["dtype"], dtype)
                refuse(len(shape) == len(tensor["shape"]) and not lies_as(shape, strides, compact(shape, tensor["stride"])),
                       "{} makes {} with strides {}, needs {}", instr["op"], shape, strides, compact(shape, tensor["stride"]))

    # Results.

    def needed(self):
        """(kind, tensor) of all that a step must report."""
        reference = self.reference
        pairs = [("loss", reference.model["loss"])] + [("buffer", buffer) for buffer in reference.new_value_of]
        for parameter, gradient in reference.gradient_of.items():
            pairs += [("gradient", gradient)] + [("parameter", parameter)] * reference.trains
        return pairs

    def check_covered(self):
        """Together the ranks report every element of what is needed, and nothing else."""
        covered, shapes = {}, [tensor["shape"] for tensor in self.reference.model["tensors"]]
        known = {*self.needed(), *(("parameter", parameter) for parameter in self.reference.gradient_of)}
        for rank, entry in ((rank, entry) for rank in self.ranks for entry in rank.program["results"]):
            key = entry["kind"], self.reference.ids[entry["tensor"]]
            refuse(key not in known, "rank {} reports {} {}, which the step does not give", rank.number, entry["kind"],
                   entry["tensor"])
            cells = torch.arange(math.prod(shapes[key[1]])).reshape(shapes[key[1]])
            marks = covered.setdefault(key, torch.zeros(cells.numel(), dtype=torch.bool))
            marks[boxed(cells, self.leaves[entry["tensor"]], entry["box"]).flatten()] = True
        for kind, number in self.needed():
            refuse((kind, number) not in covered or not covered[kind, number].all(), "the {} {} is not complete", kind,
                   self.reference.model["tensors"][number]["name"])

    def compare(self):
        """Every report equals its part of the reference."""
        for rank, entry in ((rank, entry) for rank in self.ranks for entry in rank.program["results"]):
            number = self.reference.ids[entry["tensor"]]
            whole, held = self.reference.after[self.step][number], self.reference.new_value_of.get(number, number)
            got, wanted = rank.read(entry["slot"], 0), boxed(whole, self.leaves[entry["tensor"]], entry["box"])
            refuse(got.shape != wanted.shape or not same(got, wanted, whole),
                   "step {}: rank {} reports {} {}, not as one device", self.step, rank.number, entry["kind"], entry["tensor"])
            rank.check_strides(got, self.reference.model["tensors"][held], "reports")


def same(value, wanted, whole=None):
    """Equal but for rounding. An element that is not a number equals none."""
    if value.dtype != wanted.dtype or not value.is_floating_point():
        return value.dtype == wanted.dtype and torch.equal(value, wanted)
    largest = float((wanted if whole is None else whole).abs().max()) if wanted.numel() else 0
    return torch.allclose(value, wanted, rtol=0, atol=TOLERANCE * (largest + 1e-6))


@in_doubles
def judge(model, program, reference=None):
    """None if the Program computes the Model's step, else a sentence that says why not."""
    try:
        Checker(program, reference or Reference(model, optimizer_of(program))).check()
    except Refused as why:
        return str(why)
    except (AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError) as error:
        return f"cannot be walked: {type(error).__name__} {str(error).splitlines()[0]}"
    return None


def main(*paths):
    torch.set_num_threads(1)
    model, *programs = [json.load(open(path)) for path in paths]
    failed = False
    for path, program in zip(paths[1:], programs):
        why = judge(model, program)
        failed |= why is not None
        print(f"{path}: {why or 'computes the step of ' + model['name']}")
    sys.exit(3 if failed else 0)


if __name__ == "__main__":
    main(*sys.argv[1:]) if len(sys.argv) > 2 else sys.exit(__doc__)
