"""An odd module on ranks beside plain PyTorch, which is the judge: three steps, then loss, parameters and buffers."""

import contextlib
import importlib
import math
import re
import warnings
from dataclasses import dataclass
from unittest import mock

import torch
from torch import nn

import partita

from .net import ODD, ROWS, TOKENS, WIDTH

STEPS, CLOSE, SCALE = 3, 1e-9, 8
PLANS = ("dp", "zero1", "zero3", "tp", "pipeline")
SETTINGS = {
    "plain": {},
    "clip": {"clip": 0.05},
    "scale": {"precision": f"loss_scale={SCALE}"},
    "accumulate": {"microbatches": 2},
    "all": {"clip": 0.05, "precision": f"loss_scale={SCALE}", "microbatches": 2},
}
EQUAL, REFUSED, WRONG, BROKEN = "equal", "refused", "WRONG", "BROKEN"


@dataclass(frozen=True)
class Verdict:
    word: str
    why: str = ""


@contextlib.contextmanager
def doubles():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def made(name):
    torch.manual_seed(7)
    return ODD[name].kind()


def batches():
    """New ones every time: a module may change what it is given."""
    draw = torch.Generator().manual_seed(3)
    return [{"x": torch.randn(ROWS, WIDTH, generator=draw), "y": torch.randn(ROWS, WIDTH, generator=draw),
             "ids": torch.randint(TOKENS, (ROWS, 3), generator=draw)} for _ in range(STEPS)]


def optimizer_of(module, setting):
    """SGD sees every factor of a gradient, AdamW every step that was counted."""
    if setting == "accumulate":
        return torch.optim.AdamW(module.parameters(), 1e-2, eps=1e-4, weight_decay=0.1)
    return torch.optim.SGD(module.parameters(), 0.1, momentum=0.9, weight_decay=0.01)


def state_of(module):
    """Everything with a name, those that are not saved and those that are tied too."""
    named = [*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False)]
    return {name: value.detach().clone() for name, value in named}


def eager(name, setting):
    """(losses, state) of plain PyTorch."""
    module = made(name)
    optimizer, losses = optimizer_of(module, setting), []
    clip, scaled = SETTINGS[setting].get("clip"), "precision" in SETTINGS[setting]
    for batch in batches():
        optimizer.zero_grad()
        loss = module(**batch)
        loss = getattr(loss, "loss", loss[0] if isinstance(loss, tuple) else loss)
        (SCALE * loss).backward() if scaled else loss.backward()
        for parameter in module.parameters():
            if parameter.grad is not None:  # autograd may leave two in one memory, which clipping would scale twice
                parameter.grad = parameter.grad / SCALE if scaled else parameter.grad.clone()
        if clip:
            nn.utils.clip_grad_norm_(module.parameters(), clip)
        optimizer.step()
        losses.append(loss.item())
    return losses, state_of(module)


def on_ranks(name, model, plan, setting):
    """The same by `partita.parallelize`, whose capture of this module is `model`."""
    module = made(name)
    options = dict(SETTINGS[setting])
    clip = options.pop("clip", None)
    plan = partita.recipe(plan, model, ranks=2, optimizer="sgd", **{"microbatches": 1, **options})
    with mock.patch.object(importlib.import_module("partita.parallelize"), "capture", lambda *_, **__: model):
        step = partita.parallelize(module, batches()[0], optimizer_of(module, setting), plan=plan, clip=clip)
    losses = [step(batch) for batch in batches()]
    return losses, state_of(step.module())


class Trial:
    """One module: captured once, compared with PyTorch in as many ways as wanted."""

    def __init__(self, name):
        self.name, self.expected = name, {}
        with doubles():
            self.model, self.refusal = _tried(lambda: partita.capture(made(name), batches()[0]))

    def verdict(self, plan, setting) -> Verdict:
        if self.refusal:
            return self.refusal
        with doubles():
            got, refusal = _tried(lambda: on_ranks(self.name, self.model, plan, setting))
            return refusal or _compared(got, self._eager(setting))

    def _eager(self, setting):
        if setting not in self.expected:
            self.expected[setting] = eager(self.name, setting)
        return self.expected[setting]


def _tried(work):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return work(), None
    except (partita.InputError, partita.Infeasible) as error:
        return None, Verdict(REFUSED, str(error))
    except Exception as error:  # whatever else is raised is a fault of ours, and is told as one
        return None, Verdict(BROKEN, f"{type(error).__name__}: {error}")


def _compared(got, want) -> Verdict:
    named = {**{f"loss {i}": (torch.tensor(a), torch.tensor(b)) for i, (a, b) in enumerate(zip(got[0], want[0]))},
             **{name: (value, want[1].get(name)) for name, value in got[1].items()}}
    if got[1].keys() != want[1].keys():
        return Verdict(WRONG, f"has {sorted(got[1])}, PyTorch {sorted(want[1])}")
    far = {name: _distance(a, b) for name, (a, b) in named.items()}
    worst = max(far, key=far.get)
    return Verdict(EQUAL) if far[worst] <= CLOSE else Verdict(WRONG, f"{worst} is {far[worst]:.1e} off")


def _distance(a, b) -> float:
    """Largest difference, relative to the largest value above 1; infinite where kinds or places of NaN differ."""
    if b is None or a.shape != b.shape or a.dtype != b.dtype or not torch.equal(a.isnan(), b.isnan()):
        return math.inf
    if a.numel() == 0 or torch.equal(a, b):
        return 0.0
    a, b = (value.nan_to_num() if value.is_floating_point() else value.to(torch.complex128) for value in (a, b))
    return ((a - b).abs().max() / b.abs().max().clamp(min=1)).item()


# What every row of the batch has a part in before the last micro-batch has run cannot be cut into micro-batches.
COUPLED = {
    "BagsOfEmbeddings", "BatchNorm", "BatchNormTwice", "Bits", "BufferInPlaceInGraph", "BufferOfGradientNorm", "BufferPuts",
    "CheckpointedNorm", "ComplexGradients", "ComplexViews", "Conjugated", "CumulativeOverRows", "EmbeddingByFrequency",
    "Fourier", "GivesOneGradientTwice", "GradientStepInside", "GradientThroughBuffer", "HardestRows",
    "LargestRow", "LargestSeen", "LerpBuffer", "LogSumExpOverRows", "MaskedFill", "MedianOfRows", "MomentumBuffer",
    "NotPersistent", "OwnStatistics", "PutsAccumulating", "Queue", "QueueByIndex", "RealAndImaginary", "RegisteredTwice",
    "RolledRows", "ScaledByItself", "ScatteredEmbedding", "SeveralPieces", "SortedValues", "TwoRowsOfOneStorage",
    "VarianceOfRows",
}
UNCUT = "cannot be cut into micro-batches; try --microbatches 1"
UNSCALED = {  # what a loss scale would show in
    "HookThatKeeps": "precision.loss_scale: the new value of buffer .* is computed from .*, the gradient of the loss; leave",
    "HookOnATensor": "precision.loss_scale: .*aten.clamp.default.* is not linear in what is computed from .*; leave the scale",
}
TOO_FEW = {("EveryOtherRow", plan): "cannot feed 4 pieces" for plan in ("dp", "zero1", "zero3")}  # two rows are left


def expected_refusal(name, plan, setting):
    """The sentence that this cell must be refused with, as a pattern; None where it must be equal."""
    refused = ODD[name].refused
    found = [refused[key] for key in ("capture", "parallelize") if key in refused]
    if "precision" in SETTINGS[setting]:
        found += [text for module, text in UNSCALED.items() if module == name]
    if "microbatches" in SETTINGS[setting]:
        found += [UNCUT] * (name in COUPLED) + [text for cell, text in TOO_FEW.items() if cell == (name, plan)]
    return found[0] if found else None


def as_expected(verdict, name, plan, setting) -> bool:
    pattern = expected_refusal(name, plan, setting)
    if pattern is None:
        return verdict.word == EQUAL
    return verdict.word == REFUSED and re.search(pattern, verdict.why, re.DOTALL) is not None
