"""The second witness accepts what is right, refuses one broken program for every rule, and agrees with the certificate."""

import copy
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import partita
from partita import witness

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("PARTITA_LIBRARY_DIR", ROOT / "build/full/lib")).parent


class Net(nn.Module):
    """Two parameters share a gradient; a buffer and a frozen parameter last; views overlap; backward adds its seed twice."""

    def __init__(self):
        super().__init__()
        self.w, self.p1, self.p2 = (nn.Parameter(torch.randn(*shape)) for shape in ((6, 6), (6,), (6,)))
        self.f = nn.Parameter(torch.randn(6), requires_grad=False)
        self.register_buffer("k", torch.randn(6))
        self.register_buffer("n", torch.zeros(()))

    def forward(self, x):
        self.n.add_(torch.full((), 1.0))
        m = x @ self.w + (((self.p1 + self.p2) + self.k) + self.f)
        o = m[:, 1:] + m[:, :-1]
        loss = (o * o).sum()
        return loss + 0.5 * loss


class Odd(nn.Module):
    """Random numbers, running statistics, gradients that are views, and complex numbers."""

    def __init__(self):
        super().__init__()
        self.p1, self.p2, self.p3 = (nn.Parameter(torch.randn(*shape)) for shape in ((6, 6), (6,), (6, 3, 2)))
        self.norm = nn.BatchNorm1d(6)

    def forward(self, x):
        turned = torch.view_as_complex(self.p3).conj() * 2
        h = nn.functional.dropout(x @ (self.p1 + torch.diag_embed(self.p2)), 0.5)
        return (self.norm(h) @ torch.view_as_real(turned).flatten(1)).square().mean()


class Clamped(nn.Module):
    """Backward is not linear: a loss scale would change it."""

    def __init__(self):
        super().__init__()
        self.p = nn.Parameter(torch.randn(6, 6))

    def forward(self, x):
        h = x @ self.p
        h.register_hook(lambda gradient: gradient.clamp(-0.01, 0.01))
        return h.square().mean()


class _Same(torch.autograd.Function):
    """Gives two parameters one gradient, through an op whose schema does not say so."""

    @staticmethod
    def forward(ctx, a, b):
        return a + b

    @staticmethod
    def backward(ctx, gradient):
        return gradient, torch.ops.partita_witness.lying(gradient)


class Lying(nn.Module):
    def __init__(self):
        super().__init__()
        self.p1, self.p2 = (nn.Parameter(torch.randn(6, 6)) for _ in range(2))

    def forward(self, x):
        return (x @ _Same.apply(self.p1, self.p2)).square().mean()


@pytest.fixture(scope="module")
def lying_op():
    with torch.library._scoped_library("partita_witness", "DEF") as library:
        library.define("lying(Tensor x) -> Tensor")
        library.impl("lying", lambda x: x.view(x.shape), "CPU")
        library.impl("lying", torch.empty_like, "Meta")
        yield


@pytest.fixture(scope="module")
def lowered(tmp_path_factory):
    """Gives (model, program) of a module or preset, a recipe with its flags, and an optimizer in the place of its own."""
    folder, made = tmp_path_factory.mktemp("programs"), {}

    def captured(kind):
        path = folder / f"{kind.__name__}.model.json"
        if not path.exists():
            torch.manual_seed(0)
            partita.capture(kind(), (torch.randn(4, 6),)).save(path)
        return path

    def run(*command):
        subprocess.run([BUILD / "bin/partita", *command, "--quiet"], check=True, cwd=folder)

    def lower(what, recipe, optimizer=None):
        key = what, recipe, str(optimizer)
        if key not in made:
            model, phases = what if isinstance(what, str) else captured(what), folder / f"phases{len(made)}"
            run("recipe", *recipe.split(), model, "-o", "plan.json")
            if optimizer:
                plan = json.loads((folder / "plan.json").read_text())
                (folder / "plan.json").write_text(json.dumps({**plan, "optimizer": optimizer}))
            run("lower", model, "plan.json", "--dump-dir", phases)
            (program,) = phases.glob("*-program.json")
            made[key] = json.loads((phases / "00-model.json").read_text()), json.loads(program.read_text())
        return copy.deepcopy(made[key])

    return lower


SGD = {"name": "sgd", "lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1}
RIGHT = [
    (Net, "dp --ranks 1"),
    (Net, "dp --ranks 2 --optimizer none"),
    (Net, "dp --ranks 2 --optimizer momentum --microbatches 2"),
    (Net, "dp --ranks 2 --optimizer sgd --clip 0.5"),
    (Net, "zero3 --ranks 2 --clip 0.5 --precision loss_scale=8"),
    (Net, "zero1 --ranks 2 --precision bf16"),
    (Net, "dp --ranks 2 --overlap --microbatches 2"),
    (Net, "dp --ranks 2", SGD),
    (Net, "dp --ranks 2", {**SGD, "dampening": 0, "nesterov": True}),
    (Net, "zero3 --ranks 2 --clip 1", {"name": "adam", "lr": 0.1, "weight_decay": 0.1}),
    (Net, "zero1 --ranks 2", {**SGD, "groups": [{"params": ["p*"], "lr": 0.5, "momentum": 0}, {"params": ["w"], "lr": 0.2}]}),
    (Odd, "dp --ranks 2 --clip 0.1 --optimizer sgd"),
    (Odd, "zero3 --ranks 2"),
    ("gpt2-tiny", "pipeline --ranks 2 --microbatches 4 --schedule zb-h1 --clip 0.1 --precision loss_scale=8"),
    ("gpt2-tiny", "tp --ranks 2 --precision fp16"),
    ("gpt2-tiny", "zero3 --ranks 2 --overlap --microbatches 2"),
    ("llama-tiny", "cp --ranks 2 --merge lse"),
    ("llama-tiny", "sp --ranks 2 --loss-pieces 2"),
    ("mixtral-tiny", "ep --ranks 2"),
    ("evoformer-tiny", "dp --ranks 2 --optimizer sgd"),
]


@pytest.mark.parametrize("right", RIGHT, ids=lambda right: f"{getattr(right[0], '__name__', right[0])} {right[1]}")
def test_right_programs_are_accepted(lowered, right):
    assert witness.judge(*lowered(*right)) is None


# Broken programs: each of these changes one thing, in place.


def instrs(program):
    return [instr for body in program["bodies"] for instr in body["instrs"]]


def find(program, op):
    return next(instr for instr in instrs(program) if instr.get("op") == op)


def put_before(program, op, *more):
    body = next(body for body in program["bodies"] if any(instr.get("op") == op for instr in body["instrs"]))
    at = next(i for i, instr in enumerate(body["instrs"]) if instr.get("op") == op)
    body["instrs"][at:at] = more


def make_room(program):
    """For slots l90 and r90."""
    for body in program["bodies"]:
        body["locals"] = 100
    for rank in program["ranks"]:
        rank["rank_slots"] = 100


def take(program, gone):
    """The instructions that are taken out."""
    taken = [instr for instr in instrs(program) if gone(instr)]
    for body in program["bodies"]:
        body["instrs"] = [instr for instr in body["instrs"] if not gone(instr)]
    return taken


def add_in_place(program, op, into):
    instr = find(program, op)
    slots, out, drop = instr["in"], instr["out"], [slot for slot in instr.get("drop", []) if slot != instr["out"][0]]
    instr.clear()
    instr.update({"do": "add", "in": [slots[into], slots[1 - into]], "out": out, "sum": op, "drop": drop})


def load_of(program, name):
    return next(load for load in program["ranks"][0]["loads"] if load["tensor"] == name)


def turned(program, number, strides=None):
    """A type like this one that lies in memory in another way."""
    dtype, shape, old = program["types"][number]
    program["types"].append([dtype, shape, strides or old[::-1]])
    return len(program["types"]) - 1


def leave_out(program, kind, name):
    for rank in program["ranks"]:
        rank["results"] = [result for result in rank["results"] if (result["kind"], result["tensor"]) != (kind, name)]


def unmark_view(program):
    del find(program, "root/slice")["view"]


def mark_view(program):
    find(program, "root/mul")["view"] = True


def scale_the_counter(program):
    scale = take(program, lambda instr: instr["do"] == "scale")[0]
    slot = find(program, "root/full")["out"]
    put_before(program, "root/add", {**scale, "in": slot, "out": slot})


def scale_later(program):
    scale = take(program, lambda instr: instr["do"] == "scale")[0]
    slot = find(program, "root/mul.1.grad.0")["out"]
    put_before(program, "root/mul.1.grad.1", {**scale, "in": slot, "out": slot})


def scale_without_optimizer(program):
    program["precision"] = {"loss_scale": 8}


def report_no_parameter(program):
    leave_out(program, "parameter", "p2")


def report_no_buffer(program):
    leave_out(program, "buffer", "n")


def report_an_old_buffer(program):
    for rank in program["ranks"]:
        next(result for result in rank["results"] if result["kind"] == "buffer")["slot"] = load_of(program, "n")["slot"]


def change_a_buffer(program):
    add_in_place(program, "root/add.2", 1)


def change_a_frozen_parameter(program):
    add_in_place(program, "root/add.3", 1)


def change_an_untrained_parameter(program):
    add_in_place(program, "root/add.1", 0)
    leave_out(program, "parameter", "p1")


def add_overlapping_views(program):
    add_in_place(program, "root/add.5", 0)


def change_expanded(program):
    make_room(program)
    made = find(program, "root/sum.grad.0")
    put_before(program, "root/mul.grad.0", {"do": "zeros", "in": [], "out": ["l90"], "types": made["types"]},
               {"do": "add", "in": [*made["out"], "l90"], "out": made["out"], "drop": ["l90"]})


def add_the_raw_seed(program):
    make_room(program)
    put_before(program, "root/mul.1.grad.1", {**find(program, "root/add.6.grad.0"), "out": ["l90"]})
    add_in_place(program, "root/mul.1.grad.1", 1)
    instr = next(instr for instr in instrs(program) if instr.get("sum") == "root/mul.1.grad.1")
    instr["drop"], instr["in"][1] = [*instr["drop"], "l90"], "l90"


def count_a_gradient_once(program):
    body = next(body for body in program["bodies"] if sum(instr["do"] == "squares" for instr in body["instrs"]) == 3)
    body["instrs"].remove([instr for instr in body["instrs"] if instr["do"] == "squares"][-1])


def count_parts_by_number(program):
    """One part of a shared gradient three times, the other once."""
    last = [rank["actions"][-1] for rank in program["ranks"]]
    bodies = []
    for action in last:
        program["bodies"].append(copy.deepcopy(program["bodies"][action[1]]))
        action[1] = len(program["bodies"]) - 1
        bodies.append(program["bodies"][-1]["instrs"])
    shared = [[instr for instr in body if instr["do"] == "squares"][-1] for body in bodies]
    bodies[0].insert(bodies[0].index(shared[0]), shared[0])
    bodies[1].remove(shared[1])


def load_twice(program):
    make_room(program)
    for rank in program["ranks"]:
        load = next(load for load in rank["loads"] if load["tensor"] == "w")
        rank["loads"].append({**load, "slot": "r90"})
    for body in program["bodies"]:
        for at, instr in enumerate(body["instrs"]):
            if instr["do"] == "optimize" and instr["in"][0] == load["slot"]:
                body["instrs"].insert(at, {**instr, "in": ["r90", *instr["in"][1:]], "out": ["r90"], "drop": []})
                break


def load_turned(program):
    load = load_of(program, "w")
    load["type"] = turned(program, load["type"])


def gather_turned(program, strides=None, do="all_gather"):
    gather = next(instr for instr in instrs(program) if instr["do"] == do
                  and len(program["types"][instr["types"][0]][1]) == 2)
    gather["types"] = [turned(program, gather["types"][0], strides)]


def gather_with_gaps(program):
    gather_turned(program, [12, 1])


def scatter_turned(program):
    gather_turned(program, [1, 3], "reduce_scatter")


def load_another_dtype(program):
    load = load_of(program, "x")
    load["type"] = turned(program, load["type"], program["types"][load["type"]][2])
    program["types"][-1][0] = "float64"


def keep_a_gradient_in_half_precision(program):
    for instr in instrs(program):
        if instr["do"] == "cast":
            instr["do"] = "move"


def keep_squares_in_float32(program):
    number = next(instr["types"][0] for instr in instrs(program) if instr["do"] == "squares")
    program["types"][number][0] = "float32"


def promise_other_strides(program):
    instr = find(program, "root/mul")
    instr["types"] = [turned(program, instr["types"][0])]


def use_no_slot(program):
    program["ranks"][1]["rank_slots"] -= 1


def update_by_other_settings(program):
    next(instr for instr in instrs(program) if instr.get("settings") == 1).pop("settings")


def exchange_states(program):
    for instr in instrs(program):
        if instr["do"] == "optimize":
            instr["in"][2:4] = instr["in"][3:1:-1]


def drop_a_state(program):
    next(instr for instr in reversed(instrs(program)) if instr["do"] == "optimize").setdefault("drop", []).append(
        next(load["slot"] for load in program["ranks"][0]["loads"] if load.get("state") == 0))


def update_nothing(program):
    take(program, lambda instr: instr["do"] == "optimize" and instr["in"][0] == load_of(program, "w")["slot"])


SCALED, NORM = "dp --ranks 2 --optimizer sgd --clip 0.5 --precision loss_scale=8", "for the squares of all gradients"
GROUPS = {"name": "sgd", "lr": 0.1, "groups": [{"params": ["p*"], "lr": 0.5}]}
BROKEN = [
    (unmark_view, "dp --ranks 2", "root/slice makes a view, but is not marked as one"),
    (mark_view, "dp --ranks 2", "root/mul is marked as a view, but makes a new tensor"),
    (scale_the_counter, SCALED, NORM),
    (scale_the_counter, "dp --ranks 1 --optimizer sgd --precision loss_scale=8", NORM),
    (scale_later, SCALED, "which is not the gradient of the loss"),
    (scale_without_optimizer, "dp --ranks 2 --optimizer none", "has a loss scale, which no optimizer takes out"),
    (report_no_parameter, "dp --ranks 2", "the parameter p2 is not complete"),
    (report_no_parameter, "zero3 --ranks 2", "the parameter p2 is not complete"),
    (report_no_buffer, "dp --ranks 2", "the buffer n is not complete"),
    (report_an_old_buffer, "dp --ranks 2", "reports buffer n, not as one device"),
    (change_a_buffer, "dp --ranks 2", "k lasts to the next step, but r4 holds something else"),
    (change_a_frozen_parameter, "dp --ranks 2", "f lasts to the next step, but r5 holds something else"),
    (change_an_untrained_parameter, "dp --ranks 2 --optimizer none", "p1 lasts to the next step, but r2 holds something"),
    (add_overlapping_views, "dp --ranks 2", "which shares its storage with l2, which it changes"),
    (change_expanded, "dp --ranks 2", "in place, whose elements share memory"),
    (add_the_raw_seed, SCALED, NORM),
    (count_a_gradient_once, "dp --ranks 2 --clip 1e9", NORM),
    (count_parts_by_number, "zero3 --ranks 2 --clip 0.5", NORM),
    (load_twice, "dp --ranks 2", "reports parameter w, not as one device"),
    (load_turned, "dp --ranks 2", "loads w with strides [1, 6], needs [6, 1]"),
    (gather_turned, "zero3 --ranks 2", "reads w with strides [1, 6], needs [6, 1]"),
    (scatter_turned, "zero3 --ranks 2", "reports root/mm.grad.1:0 with strides [1, 3], needs [6, 1]"),
    (gather_with_gaps, "zero3 --ranks 2", "with strides [12, 1], which leave gaps"),
    (load_another_dtype, "dp --ranks 2", "loads x as float64, needs float32"),
    (keep_a_gradient_in_half_precision, "zero1 --ranks 2 --precision bf16", "makes bfloat16 [6], promised float32 [6]"),
    (keep_squares_in_float32, "dp --ranks 2 --clip 1", "keeps a sum of squares as float32 []"),
    (promise_other_strides, "dp --ranks 1", "root/mul makes [4, 5] with strides [1, 5], needs [5, 1]"),
    (use_no_slot, "dp --ranks 2", "rank 1 has no slot r"),
    (update_by_other_settings, "dp --ranks 2", "reports parameter p1, not as one device", GROUPS),
    (exchange_states, "dp --ranks 2", "state 0 of w is never updated"),
    (drop_a_state, "dp --ranks 1", "drops or replaces state 0 of w; it must stay in its slot"),
    (update_nothing, "dp --ranks 2", "reports parameter w, not as one device"),
]


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: f"{broken[0].__name__} {broken[1]}")
def test_broken_programs_are_refused(lowered, broken):
    change, recipe, why, *optimizer = broken
    model, program = lowered(Net, recipe, *optimizer)
    assert witness.judge(model, program) is None
    change(program)
    assert why in str(witness.judge(model, program))


def test_what_an_op_returns_of_its_inputs_without_saying_so_is_copied(lowered, lying_op):
    assert witness.judge(*lowered(Lying, "dp --ranks 2 --optimizer sgd --clip 0.5")) is None


def test_a_loss_scale_needs_gradients_that_grow_with_it(lowered):
    assert witness.judge(*lowered(Clamped, "dp --ranks 2 --optimizer sgd --clip 0.5")) is None
    model, program = lowered(Net, SCALED)
    model["seed"] = next(op["out"][0] for op in model["ops"] if op["name"] == "root/full")
    assert "has a loss scale, but gradients or buffers do not go with" in witness.judge(model, program)
    del model["seed"]
    assert witness.judge(model, program) is None


def test_numbers_of_the_optimizer_are_those_of_the_reference(lowered):
    model, program = lowered(Net, SCALED)
    reference = witness.Reference(model, witness.optimizer_of(program))
    assert witness.judge(model, program, reference) is None
    program["optimizer"]["lr"] *= 2
    assert "updates by other numbers" in witness.judge(model, program, reference)


@pytest.mark.parametrize("name,settings", [
    ("SGD", {"momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1}),
    ("SGD", {"momentum": 0.9, "nesterov": True}), ("SGD", {"weight_decay": 0.1}),
    ("Adam", {"weight_decay": 0.1, "betas": (0.8, 0.99)}), ("AdamW", {"weight_decay": 0.1, "eps": 1e-3})])
def test_updates_are_those_of_torch(name, settings):
    torch.manual_seed(0)
    values, gradients = torch.randn(5, dtype=torch.float64), torch.randn(4, 5, dtype=torch.float64)
    parameter = nn.Parameter(values.clone())
    optimizer = getattr(torch.optim, name)([parameter], lr=0.1, **settings)
    beta1, beta2 = settings.pop("betas", (0.9, 0.999))
    numbers = {"lr": 0.1, "beta1": beta1, "beta2": beta2, "eps": 1e-8, "weight_decay": 0, "momentum": 0, **settings}
    spec = witness.optimizer_of({"optimizer": {"name": name.lower(), **numbers}})
    states = [torch.zeros(5, dtype=torch.float64) for _ in range(spec["states"])]
    for step, gradient in enumerate(gradients):
        parameter.grad = gradient.clone()
        optimizer.step()
        witness.update(spec, spec["numbers"][0], step + 1, values, gradient, states)
        torch.testing.assert_close(values, parameter.detach(), rtol=1e-12, atol=1e-14)


def test_agrees_with_the_certificate(tmp_path):
    """Fifteen programs and a mutant of each class."""
    subprocess.run([BUILD / "bin/program_campaign", "1", "1", "--write", tmp_path], check=True, capture_output=True)
    command = [sys.executable, ROOT / "bench/program_witness.py", tmp_path]
    told = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT / "python")}, capture_output=True, text=True)
    assert told.returncode == 0, told.stdout + told.stderr
    rows = [line.split() for line in told.stdout.splitlines()[1:]]
    assert rows[-1] == ["unbroken", "15", "0", "0", "0"]
    assert len(rows) == 18 and all(int(row[1]) + int(row[2]) == 1 for row in rows[:-1]), told.stdout


def test_is_short_and_knows_nothing_of_us():
    lines = (ROOT / "python/partita/witness.py").read_text().splitlines()
    assert len(lines) <= 900
    imported = [line.split()[1] for line in lines if line.lstrip().startswith(("import ", "from "))]
    assert "torch" in imported and all(name == "torch" or name in sys.stdlib_module_names for name in imported)
