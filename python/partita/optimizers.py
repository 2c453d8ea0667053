"""A torch optimizer -> the one a plan describes; its states on their way in and out."""

import weakref

import torch

from .errors import InputError
from .gradients import check_hooks

NUMBERS = ("lr", "beta1", "beta2", "eps", "weight_decay", "momentum", "dampening", "nesterov")
MASTER = "master"  # beside torch's own states, where training keeps float32 copies


class StepGuard:
    """The hook of a Step on optimizer.step(), which its user is not to call. Weak, so that an optimizer does not keep the
    ranks of a step that nobody has any more."""

    def __init__(self, tell):
        self.tell = weakref.WeakMethod(tell)

    def __call__(self, *_):
        if tell := self.tell():
            tell()


class Row:
    """How to read one kind of torch optimizer: its name in a plan, its numbers, what must be off, its states."""

    def __init__(self, name, read, off, states):
        self.name, self.read, self.off, self.states = name, read, off, states


def _moments(group):
    return {"lr": group["lr"], "beta1": group["betas"][0], "beta2": group["betas"][1], "eps": group["eps"],
            "weight_decay": group["weight_decay"]}


def _descent(group):
    return {key: group[key] for key in ("lr", "momentum", "dampening", "weight_decay", "nesterov")}


ROWS = {
    torch.optim.AdamW: Row("adamw", _moments, ("amsgrad", "maximize"), ("exp_avg", "exp_avg_sq")),
    torch.optim.Adam: Row("adam", _moments, ("amsgrad", "maximize"), ("exp_avg", "exp_avg_sq")),
    torch.optim.SGD: Row("sgd", _descent, ("maximize",), ("momentum_buffer",)),
}


def row_of(optimizer) -> Row:
    if isinstance(optimizer, type):
        raise InputError("optimizer", f"it is the class {optimizer.__name__}",
                         f"make one: {optimizer.__name__}(module.parameters())")
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise InputError("optimizer", f"it is a {type(optimizer).__name__}",
                         "give a torch optimizer, such as torch.optim.AdamW(module.parameters(), 3e-4)")
    # A subclass that steps as its parent does is the parent.
    for kind in type(optimizer).__mro__:
        if kind in ROWS and type(optimizer).step is kind.step and type(optimizer)._init_group is kind._init_group:
            return ROWS[kind]
    known = ", ".join(f"torch.optim.{kind.__name__}" for kind in ROWS)
    raise InputError("optimizer", f"{type(optimizer).__name__} is not known", f"use one of {known}")


def describe(optimizer, module: torch.nn.Module) -> dict:
    """The settings as a plan writes them. Raises InputError for what the runtime does not do."""
    row, where = row_of(optimizer), type(optimizer).__name__
    for group in optimizer.param_groups:
        for setting in row.off:
            if group.get(setting):
                raise InputError(where, f"{setting} is set", "leave it off")
        if group.get("decoupled_weight_decay") and row.name == "adam":
            raise InputError(where, "decoupled_weight_decay is set", "use torch.optim.AdamW")
        if row.name == "adamw" and not group.get("decoupled_weight_decay", True):
            raise InputError(where, "decoupled_weight_decay is not set", "use torch.optim.Adam")
    _check_called(optimizer)
    _check_covers(where, optimizer, module)
    check_hooks(dict(module.named_parameters()))
    return settings_of(optimizer, module)


def settings_of(optimizer, module: torch.nn.Module) -> dict:
    """As a plan writes them, at this moment: a scheduler changes the numbers of the groups.

    The first group gives the optimizer's own numbers; every further one is a group of the plan with its parameters.
    """
    row = row_of(optimizer)
    numbers = [_plain(row.read(group)) for group in optimizer.param_groups]
    settings = {"name": row.name, **numbers[0]}
    names = {id(parameter): name for name, parameter in module.named_parameters()}
    groups = []
    for group, its_numbers in zip(optimizer.param_groups[1:], numbers[1:]):
        params = [names[id(p)] for p in group["params"] if id(p) in names and p.requires_grad]
        groups.append({"params": params, **its_numbers})
    return {**settings, "groups": groups} if groups else settings


def _check_called(optimizer):
    """Raises InputError where optimizer.step() would do more than its class does: ranks do not call it."""
    where, step = type(optimizer).__name__, vars(optimizer).get("step")
    hooks = [*optimizer._optimizer_step_pre_hooks.values(), *optimizer._optimizer_step_post_hooks.values()]
    if not all(isinstance(hook, StepGuard) for hook in hooks):
        raise InputError(where, "it has a hook on its step, which ranks do not call",
                         "remove the hook, and do its work before or after each step of the loop")
    if step is not None and not hasattr(step, "_wrapped_by_lr_sched"):  # schedulers put theirs there
        raise InputError(where, "its step was replaced by another function, which ranks do not call",
                         "give an optimizer as its class makes it")


def trained_only(settings: dict, trained) -> dict:
    """Without the parameters that the loss does not use: no plan updates them."""
    if "groups" not in settings:
        return settings
    groups = [{**group, "params": [name for name in group["params"] if name in trained]} for group in settings["groups"]]
    return {**settings, "groups": groups}


def _plain(numbers):
    return {key: bool(value) if key == "nesterov" else float(value) for key, value in numbers.items()}


def _check_covers(where, optimizer, module):
    stepped = {id(p) for group in optimizer.param_groups for p in group["params"]}
    _check_once(where, optimizer, module)
    for name, parameter in module.named_parameters():
        if parameter.requires_grad and id(parameter) not in stepped:
            raise InputError(where, f"it does not have {name}",
                             "give it module.parameters(), or set requires_grad_(False) on what is not to be trained")
    own = {id(p) for p in module.parameters()}
    if not stepped <= own:
        raise InputError(where, f"it has {len(stepped - own)} parameters that are not the module's",
                         "give it the parameters of this module, after the last change of the module itself")


def _check_once(where, optimizer, module):
    for number, group in enumerate(optimizer.param_groups):
        seen = set()
        for parameter in group["params"]:
            if id(parameter) in seen:
                names = [name for name, its in module.named_parameters(remove_duplicate=False) if its is parameter]
                raise InputError(where, f"group {number} has {' = '.join(names) or 'a parameter'} twice, and torch would step it "
                                 "twice", "give every tensor once, as module.parameters() does")
            seen.add(id(parameter))


def read_states(optimizer, state, named: dict) -> dict:
    """Torch's states by parameter -> what ranks take over: `states`, one dict by name for each kind, and `updates`.

    state: of each parameter object, as optimizer.state. named: the trained parameters. Nothing where it is empty.
    """
    where, kinds = type(optimizer).__name__, row_of(optimizer).states
    held = {name: state[parameter] for name, parameter in named.items() if state.get(parameter)}
    if row_of(optimizer).name == "sgd":
        held = {name: entry for name, entry in held.items() if entry.get("momentum_buffer") is not None}
    if not held:
        return {}
    missing = [name for name in named if name not in held]
    if missing and row_of(optimizer).name != "sgd":
        raise InputError(where, f"its state has no entry for {missing[0]}, but for other parameters",
                         "give an optimizer in which all have taken the same steps, or a new one")
    for name, entry in held.items():
        _check_entry(where, name, entry, kinds, named[name])
    counts = {float(entry["step"]) for entry in held.values() if "step" in entry}
    if len(counts) > 1:
        raise InputError(where, f"its parameters have taken different numbers of steps ({min(counts):.0f} to "
                         f"{max(counts):.0f})", "give one in which all have taken the same, or a new one")
    states = [{name: entry[kind] for name, entry in held.items()} for kind in kinds]
    masters = {name: entry[MASTER] for name, entry in held.items() if MASTER in entry and _wider(entry[MASTER], named[name])}
    found = {"states": [*states, masters] if masters else states}
    return {**found, "updates": int(counts.pop())} if counts else found


def _check_entry(where, name, entry, kinds, parameter):
    for kind in kinds:
        if not isinstance(entry.get(kind), torch.Tensor) or (kind.startswith("exp") and "step" not in entry):
            raise InputError(where, f"its state of {name} has {', '.join(entry) or 'nothing'}, needs {', '.join(kinds)}",
                             "give the state of an optimizer of this kind")
        if entry[kind].shape != parameter.shape:
            raise InputError(where, f"{kind} of {name} is {list(entry[kind].shape)}, the parameter {list(parameter.shape)}",
                             "give the state of an optimizer of this module")


def empty_states(optimizer, named: dict) -> dict:
    """As before the first update."""
    zeros = {name: torch.zeros(parameter.shape, dtype=parameter.dtype) for name, parameter in named.items()}
    return {"states": [zeros for _ in row_of(optimizer).states], "updates": 0}


def _wider(master, parameter):
    return master.dtype.itemsize > parameter.dtype.itemsize


def write_states(optimizer, lasting: dict, named: dict, buffered, masters: bool = True) -> dict:
    """The way back: by parameter object, in torch's own form. Nothing before the first update.

    buffered: names of those that have a momentum buffer, where the optimizer is SGD.
    """
    kinds, states = row_of(optimizer).states, lasting["states"]
    kept = {}
    if lasting["updates"] == 0:
        return kept
    for name, parameter in named.items():
        kept_here = row_of(optimizer).name != "sgd" or name in buffered
        entry = {kind: states[k][name] for k, kind in enumerate(kinds) if k < len(states) - 1 and kept_here}
        if row_of(optimizer).name != "sgd":
            entry = {"step": torch.tensor(float(lasting["updates"])), **entry}
        if masters and name in states[-1]:
            entry[MASTER] = states[-1][name]
        if entry:
            kept[parameter] = entry
    return kept
