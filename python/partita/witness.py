"""A second witness: does a Program compute the step of its Model?

    python -m partita.witness MODEL.model.json PROGRAM.program.json ...

Reads the two files and nothing else of this project. It walks the ranks as the page of the format says, with numbers of
its own choice for parameters and batches (double precision, no two alike), and compares what every rank reports after
two steps with the Model's ops done one after another on whole tensors. A missing sum, a wrong piece or an old weight
changes numbers, whatever plan the Program came from; what numbers cannot show has its own rules: nobody waits for ever,
nothing is read before it is there or after it is gone, a copy on its way is left alone, nothing stays behind, and all
that training needs is reported. Exit 0: every Program is right; 3: one is not.
"""

import json
import math
import sys

import torch

TOLERANCE = 1e-9  # of the largest element of its kind; sums in another order differ by about 1e-15
STEPS = 2


class Refused(Exception):
    """Why a Program is not what its Model says."""


def refuse(condition, text, *values):
    if condition:
        raise Refused(text.format(*values))


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


def dtype_of(word):
    """Of numbers here: all that are not whole have double precision, whatever the file says."""
    dtype = getattr(torch, word)
    return torch.float64 if dtype.is_floating_point else dtype


def call(target, args, kwargs, tensors):
    """The outputs of an op, as a list."""
    args = [argument(value, tensors) for value in args]
    kwargs = {name: argument(value, tensors) for name, value in kwargs.items()}
    if target == "aten.view.default":  # of a piece that is strided where the whole was dense
        return [args[0].reshape(args[1])]
    space, name, overload = target.split(".")
    out = getattr(getattr(getattr(torch.ops, space), name), overload)(*args, **kwargs)
    return list(out) if isinstance(out, (tuple, list)) else [out]


def optimizer_of(program):
    """The optimizer's numbers, how many states it has, its loss scale, and whether it needs the norm."""
    spec = {"clip": 0, **program["optimizer"], "scale": program.get("precision", {}).get("loss_scale", 0)}
    spec["states"] = {"adamw": 2, "sgd": 1 if spec["momentum"] else 0}.get(spec["name"], 0)
    return {**spec, "norm": spec["name"] != "none" and (spec["clip"] > 0 or spec["scale"] > 0)}


def clip_factor(spec, squares, scale):
    """What torch.nn.utils.clip_grad_norm_ multiplies gradients with; the loss scale is taken out."""
    norm = math.sqrt(squares) / scale
    return (min(1.0, spec["clip"] / (norm + 1e-6)) if spec["clip"] > 0 else 1.0) / scale


def update(spec, step, parameter, gradient, states):
    """Changes parameter and states in place: AdamW or SGD, step counted from 1."""
    rate, decay, beta1, beta2 = spec["lr"], spec["weight_decay"], spec["beta1"], spec["beta2"]
    if spec["name"] == "sgd":
        direction = gradient + decay * parameter
        parameter.sub_(rate * (states[0].mul_(spec["momentum"]).add_(direction) if states else direction))
        return
    first, second = states
    parameter.mul_(1 - rate * decay)
    first.mul_(beta1).add_((1 - beta1) * gradient)
    second.mul_(beta2).add_((1 - beta2) * gradient * gradient)
    scale = (second / (1 - beta2**step)).sqrt() + spec["eps"]
    parameter.sub_(rate / (1 - beta1**step) * first / scale)


class Reference:
    """What the step is: values of every tensor, in step 0 and step 1, with the updates between."""

    def __init__(self, model, spec, seed=1):
        self.model, self.spec = model, spec
        self.ids = {tensor["name"]: i for i, tensor in enumerate(model["tensors"])}
        self.ops = {op["name"]: op for op in model["ops"]}
        self.gradient_of = {parameter: gradient for parameter, gradient in model["gradients"]}
        self.trains = spec["name"] != "none"
        random = torch.Generator().manual_seed(seed)
        kept = {i: self.draw(tensor, random) for i, tensor in enumerate(model["tensors"])
                if tensor.get("role") in ("parameter", "buffer", "constant")}
        states = {p: [torch.zeros_like(kept[p]) for _ in range(spec["states"])] for p in self.gradient_of}
        self.before, self.states_before, self.after = [], [], []
        for step in range(STEPS):
            batch = {i: self.draw(t, random) for i, t in enumerate(model["tensors"]) if t.get("role") == "batch"}
            self.before.append({**kept, **batch})
            self.states_before.append({p: [s.clone() for s in states[p]] for p in states})
            after = self.run({**kept, **batch})
            kept = {i: value.clone() for i, value in kept.items()}
            for buffer, value in model["buffers"]:
                kept[buffer] = after[value]
            if self.trains:
                self.train(step, after, kept, states)
            self.after.append({**after, **kept})

    def draw(self, tensor, random):
        shape, dtype = tensor["shape"], dtype_of(tensor["dtype"])
        if not dtype.is_floating_point:
            low, high = tensor.get("range", [0, 2])
            value = torch.randint(low, high, shape, generator=random).to(dtype)
            if tensor["name"] == "labels":  # some count for nothing, more of them in later samples
                share = torch.linspace(0.1, 0.6, shape[0]).reshape([-1] + [1] * (len(shape) - 1))
                value[torch.rand(shape, generator=random) < share] = -100
            return value
        value = torch.randn(shape, generator=random, dtype=torch.float64)
        if tensor.get("role") != "batch":
            value = 0.1 * value + (1.0 if len(shape) == 1 and tensor["name"].endswith("weight") else 0.0)
        return value.to(dtype)

    def run(self, values):
        for op in self.model["ops"]:
            for out, value in zip(op["out"], call(op["target"], op["args"], op.get("kwargs", {}), values)):
                values[out] = value
        return values

    def train(self, step, values, kept, states):
        if self.spec["norm"]:
            gradients = set(self.gradient_of.values())
            factor = clip_factor(self.spec, sum(float((values[g] ** 2).sum()) for g in gradients), 1.0)
            values.update({g: values[g] * factor for g in gradients})
        for parameter, gradient in self.gradient_of.items():
            update(self.spec, step + 1, kept[parameter], values[gradient], states[parameter])


def leaves_of(program, reference):
    """Sizes of the leaves of every dimension of loaded and reported tensors: what their boxes reach."""
    sizes = {}
    for entry in (entry for rank in program["ranks"] for entry in rank["loads"] + rank["results"]):
        name, box = entry["tensor"], entry["box"]
        dims = sizes.setdefault(name, [[0] * len(dim) for dim in box])
        refuse([len(dim) for dim in dims] != [len(dim) for dim in box], "boxes of {} have different leaves", name)
        refuse(any(begin < 0 or begin > end for dim in box for begin, end in dim), "{} has the box {}", name, box)
        sizes[name] = [[max(size, end) for size, (_, end) in zip(*both)] for both in zip(dims, box)]
    for name, dims in sizes.items():
        whole = reference.model["tensors"][reference.ids[name]]["shape"]
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
    return value.reshape(value.shape[:dim] + (outer, -1, inner) + value.shape[dim + 1:])


def slice_of(value, cut, begin, length):
    whole = opened(value, cut)
    refuse(begin < 0 or length < 0 or begin + length > whole.shape[cut[0] + 1], "slices [{}, {}) of {}", begin,
           begin + length, list(value.shape))
    return whole.narrow(cut[0] + 1, begin, length).flatten(cut[0], cut[0] + 2).clone()


def joined(values, cut, pieces):
    parts = [opened(value, cut) for value in values]
    refuse([part.shape[cut[0] + 1] for part in parts] != pieces, "joins other lengths than {}", pieces)
    return torch.cat(parts, cut[0] + 1).flatten(cut[0], cut[0] + 2)


def storage(value):
    """Equal for two names of one storage."""
    return value.untyped_storage()._cdata


class Rank:
    """One rank: its slots, and a generator that stops where it must wait for others."""

    def __init__(self, number, checker):
        self.number, self.checker = number, checker
        self.program = checker.program["ranks"][number]
        self.slots = {}      # (slot, micro-batch) -> tensor; None: a receive is on its way
        self.sending = {}    # storage -> sends on their way
        self.open = {}       # (sending, slot, micro-batch, peer, tag) -> transfers begun and not waited for
        self.started = {}    # key of the output -> input, type and outcome of a collective not waited for

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

    def typed(self, value, number):
        dtype, shape, _ = self.checker.program["types"][number]
        refuse(value.dtype != dtype_of(dtype) or list(value.shape) != shape, "rank {} makes {} {}, promised {} {}",
               self.number, value.dtype, list(value.shape), dtype, shape)
        return value

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
            begun.append(self.checker.meet(channel, "sent", (value.clone(), storage(value))))
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
                self.slots[self.key(slot, microbatch)] = self.typed(parcel["sent"][0], parcel["expected"])

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
        made = value if in_place else self.typed(outcome.clone(), instr["types"][0])
        self.started[self.key(out, microbatch)] = value, made, outcome

    def wait(self, slot, microbatch):
        key = self.key(slot, microbatch)
        refuse(key not in self.started, "rank {} waits for {}, which nobody makes", self.number, slot)
        value, made, outcome = self.started.pop(key)
        self.sending[storage(value)] -= 1
        self.slots[key] = made.copy_(outcome)

    def compute(self, instr, microbatch):
        values = [self.read(slot, microbatch) for slot in instr["in"]]
        types = [self.checker.program["types"][number] for number in instr.get("types", []) if number is not None]
        into = instr.get("into", 0 if instr["do"] in IN_PLACE else None)
        if into is not None:
            self.change(values[into], instr["in"][into])
        if instr["do"] in DO:
            made = [DO[instr["do"]](instr, values, self.checker.spec, types and types[0])]
        else:
            made = self.call_op(instr, values) if instr["do"] == "compute" else self.optimize(instr, values)
        if "into" in instr:
            refuse([storage(v) for v in values].count(storage(values[into])) > 1, "reads what it adds to")
            made = [add(values[into], *made)]
        over = None if into is None else instr["in"][into]
        for at, (slot, value) in enumerate(zip(instr["out"], made)):
            if slot is not None:
                self.write(slot, microbatch, self.typed(value, instr["types"][at]) if types else value, over)

    def call_op(self, instr, values):
        target = self.checker.reference.ops[instr["op"]]["target"]
        made = call(target, instr["args"], instr.get("kwargs", {}), values)
        theirs = set() if instr.get("view") else {storage(value) for value in values}
        return [value.clone() if value is not None and storage(value) in theirs else value for value in made]

    def optimize(self, instr, values):
        spec, count = self.checker.spec, self.checker.spec["states"]
        has_master = len(values) - spec["norm"] > 2 + count
        for value, slot in list(zip(values, instr["in"]))[2:2 + count + has_master]:
            self.change(value, slot)
        target = values[2 + count] if has_master else values[0]
        update(spec, self.checker.step + 1, target, values[1].to(target.dtype), values[2:2 + count])
        return [values[0].copy_(target) if has_master else values[0]]


def add(first, second):
    refuse(first.shape != second.shape or first.dtype != second.dtype, "adds {} to {}", second.shape, first.shape)
    return first.add_(second)


IN_PLACE = {"add", "scale", "squares", "clip", "optimize"}
DO = {  # one output of the inputs v; the type is the promised one
    "slice": lambda instr, v, spec, type: slice_of(v[0], instr["cut"], instr["begin"], instr["length"]),
    "concat": lambda instr, v, spec, type: joined(v, instr["cut"], instr["pieces"]),
    "zeros": lambda instr, v, spec, type: torch.zeros(type[1], dtype=dtype_of(type[0])),
    "move": lambda instr, v, spec, type: v[0],
    "cast": lambda instr, v, spec, type: v[0].to(dtype_of(type[0]), copy=True),
    "add": lambda instr, v, spec, type: add(*v),
    "scale": lambda instr, v, spec, type: v[0].mul_(spec["scale"]),
    "squares": lambda instr, v, spec, type: v[0].add_((v[1].double() ** 2).sum()),
    "clip": lambda instr, v, spec, type: v[0].mul_(clip_factor(spec, float(v[1]), spec["scale"] or 1.0)),
}


class Checker:
    """Walks a Program beside its Model; REQUIRES a Reference of the same model and optimizer."""

    def __init__(self, program, reference):
        self.program, self.reference, self.spec = program, reference, reference.spec
        self.leaves = leaves_of(program, reference)
        self.ranks = [Rank(number, self) for number in range(len(program["ranks"]))]

    def check(self):
        for self.step in range(STEPS):
            self.load()
            self.transfers, self.counts, self.standing = {}, {}, {}
            self.walk()
            self.compare()

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
        if do in ("all_gather", "all_to_all"):
            whole = joined(values, instr["cut"], instr["pieces"])
        else:
            refuse(any(v.shape != values[0].shape or v.dtype != values[0].dtype for v in values),
                   "members of {} bring different shapes", do)
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

    def load(self):
        """Before the first step everything is cut out of the whole; later only batches are, and the rest must be there."""
        for rank in self.ranks:
            held, rank.slots = rank.slots, {}
            refuse(any(rank.open.values()) or any(rank.sending.values()), "rank {} never waits for a transfer", rank.number)
            for entry in rank.program["loads"]:
                key = rank.key(entry["slot"], entry.get("microbatch", 0))
                refuse(key in rank.slots, "rank {} loads {} twice", rank.number, entry["slot"])
                rank.slots[key] = rank.typed(self.loaded(rank, entry, held), entry["type"])
            for (slot, _), value in held.items():
                refuse(all(slot != e["slot"] for e in rank.program["loads"] + rank.program["results"]),
                       "rank {} leaves {} behind", rank.number, slot)

    def loaded(self, rank, entry, held):
        reference, number, state = self.reference, self.reference.ids[entry["tensor"]], entry.get("state", -1)
        part = lambda value: boxed(value, self.leaves[entry["tensor"]], entry["box"]).clone()
        if state < 0 or state == self.spec["states"]:  # the tensor, or its master copy
            wanted = part(reference.before[self.step][number])
        else:
            wanted = part(reference.states_before[self.step][number][state])
        if self.step == 0 or number not in reference.gradient_of or not reference.trains:
            return wanted
        slots = [entry["slot"]] + [r["slot"] for r in rank.program["results"]
                                   if state < 0 and r["kind"] == "parameter" and r["tensor"] == entry["tensor"]]
        for slot in slots:
            value = held.get((slot, 0))
            if value is not None and value.shape == wanted.shape and same(value, wanted):
                return value.clone()
        raise Refused(f"rank {rank.number}: {entry['tensor']} is never updated")

    def compare(self):
        """Every report equals its part of the reference, and together they are all that a step must give."""
        reference, covered = self.reference, {}
        buffers = dict(reference.model["buffers"])
        needed = [("loss", reference.model["loss"])] + [("buffer", b) for b in buffers]
        for parameter, gradient in reference.model["gradients"]:
            needed += [("gradient", gradient)] + [("parameter", parameter)] * reference.trains
        for rank in self.ranks:
            for entry in rank.program["results"]:
                number, kind, leaves = reference.ids[entry["tensor"]], entry["kind"], self.leaves[entry["tensor"]]
                whole, got = reference.after[self.step][number], rank.read(entry["slot"], 0)
                wanted = boxed(whole, leaves, entry["box"])
                refuse((kind, number) not in needed or got.shape != wanted.shape or not same(got, wanted, whole),
                       "step {}: rank {} reports {} {}, not as one device", self.step, rank.number, kind, entry["tensor"])
                cells = boxed(torch.arange(whole.numel()).reshape(whole.shape), leaves, entry["box"])
                covered.setdefault((kind, number), set()).update(cells.reshape(-1).tolist())
        for kind, number in needed:
            refuse(len(covered.get((kind, number), ())) != reference.after[self.step][number].numel(),
                   "the {} {} is not complete", kind, reference.model["tensors"][number]["name"])


def same(value, wanted, whole=None):
    """Equal but for rounding. An element that is not a number equals only another."""
    largest = (wanted if whole is None else whole).double().abs().nan_to_num(posinf=0).max() if wanted.numel() else 0
    return value.dtype == wanted.dtype and torch.allclose(
        value.double(), wanted.double(), rtol=0, atol=TOLERANCE * (float(largest) + 1e-6), equal_nan=True)


def judge(model, program, reference=None):
    """None if the Program computes the Model's step, else a sentence that says why not."""
    try:
        Checker(program, reference or Reference(model, optimizer_of(program))).check()
    except Refused as why:
        return str(why)
    except (IndexError, KeyError, RuntimeError, TypeError, ValueError) as error:
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
