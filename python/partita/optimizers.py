"""A torch optimizer -> the one a plan describes."""

import torch

from .errors import InputError

# what Partita runs -> how to read its settings from a group of the torch optimizer, and settings that must be off
ADAMW = (lambda g: {"name": "adamw", "lr": g["lr"], "beta1": g["betas"][0], "beta2": g["betas"][1], "eps": g["eps"],
                    "weight_decay": g["weight_decay"]}, ("amsgrad", "maximize"))
SGD = (lambda g: {"name": "sgd", "lr": g["lr"], "momentum": g["momentum"], "weight_decay": g["weight_decay"]},
       ("dampening", "nesterov", "maximize"))
ROWS = {torch.optim.AdamW: ADAMW, torch.optim.SGD: SGD}


def describe(optimizer: torch.optim.Optimizer, parameters) -> dict:
    """The settings as a plan writes them. All trainable parameters are stepped alike, from the beginning."""
    where = type(optimizer).__name__
    if isinstance(optimizer, type):
        raise InputError("optimizer", f"it is the class {optimizer.__name__}",
                         f"make one: {optimizer.__name__}(module.parameters())")
    if type(optimizer) not in ROWS:
        raise InputError("optimizer", f"{where} is not known", "use torch.optim.AdamW or torch.optim.SGD")
    read, must_be_off = ROWS[type(optimizer)]
    for group in optimizer.param_groups:
        for setting in must_be_off:
            if group[setting]:
                raise InputError(where, f"{setting} is set", "leave it off")
    if optimizer.state:
        raise InputError(where, "it has taken steps already", "give a new optimizer")
    _check_covers(where, optimizer, parameters)
    return settings_of(optimizer)


def settings_of(optimizer: torch.optim.Optimizer) -> dict:
    """As a plan writes them, at this moment: a scheduler changes the learning rate of the groups."""
    read, _ = ROWS[type(optimizer)]
    settings = [read(group) for group in optimizer.param_groups]
    if any(other != settings[0] for other in settings):
        raise InputError(type(optimizer).__name__, "its groups have different settings",
                         "give one group with all parameters")
    return {key: value if isinstance(value, str) else float(value) for key, value in settings[0].items()}


def _check_covers(where, optimizer, parameters):
    stepped = {id(p) for group in optimizer.param_groups for p in group["params"]}
    for name, parameter in parameters:
        if parameter.requires_grad and id(parameter) not in stepped:
            raise InputError(where, f"it does not have {name}", "give it module.parameters()")
