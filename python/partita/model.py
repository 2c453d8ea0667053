"""One captured training step, and its file (docs/formats/model.md)."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch

from .batches import check_tensors
from .errors import InputError
from .files import save_tensors, write_whole
from .native import library
from .random import STATE

VERSION = 1
SUFFIX = ".model.json"


@dataclass
class Result:
    """What one step of a model gives: the loss, and by name the gradients and the buffers it changed."""

    loss: float
    grads: dict
    buffers: dict


@dataclass(repr=False)
class Model:
    """A training step as an ATen graph. `tensors` and `ops` hold what the file holds, one dict per line."""

    name: str
    tensors: list
    ops: list
    loss: int
    gradients: list
    buffers: list
    seed: int | None = None  # the gradient of the loss
    constants: dict = field(default_factory=dict, repr=False)  # name -> value
    indexes: list = field(default_factory=list, repr=False, compare=False)  # what the batch must be checked for
    written_inputs: list = field(default_factory=list, repr=False, compare=False)  # of the batch, those that forward changes

    def __repr__(self):
        trained = sum(math.prod(self.tensors[parameter]["shape"]) for parameter, _ in self.gradients)
        inputs = ", ".join(f"{t['name']} {t['dtype']}{t['shape']}" for t in self.tensors if t.get("role") == "batch")
        return f"<partita.Model {self.name}: {trained:,} trained parameters, {len(self.ops):,} ops, batch {inputs}>"

    def handle(self):
        """The step as the compiled part holds it: parsed once. REQUIRES: lists and dicts of this model are not edited."""
        if "_handle" not in vars(self):
            vars(self)["_handle"] = library().Model(self.to_json())
        return self._handle

    def __setattr__(self, name, value):
        vars(self).pop("_handle", None)  # another attribute, another step
        super().__setattr__(name, value)

    def __getstate__(self):
        return {name: value for name, value in vars(self).items() if name != "_handle"}

    def to_json(self) -> str:
        head = json.dumps({"format": "partita.model", "version": VERSION, "name": self.name,
                           "torch": torch.__version__.split("+")[0]})
        seed = {} if self.seed is None else {"seed": self.seed}
        tail = json.dumps({"loss": self.loss, **seed, "gradients": self.gradients, "buffers": self.buffers})
        return (f'{head[:-1]},\n "tensors": {_lines(self.tensors)},\n "ops": {_lines(self.ops)},\n {tail[1:]}\n')

    def save(self, path) -> None:
        """Writes `path`, and NAME.constants.safetensors beside it when the step has constants."""
        path = Path(path)
        if not path.name.endswith(SUFFIX):
            raise InputError(str(path), "a captured model needs a name that the command recognises",
                             f"call it {path.name.split('.')[0]}{SUFFIX}")
        write_whole(path, self.to_json())
        if self.constants:
            values = {name: value.detach().contiguous().clone() for name, value in self.constants.items()}
            save_tensors(values, path.with_name(path.name.removesuffix(SUFFIX) + ".constants.safetensors"))

    def run(self, module, batch, seed: int = 0) -> Result:
        """One forward and backward on one device by the compiled executor; `module` gives the weights and keeps them.

        seed: of the random numbers the step draws, such as dropout's.
        """
        return Result(*library().run_step(self.handle(), self.weights(module, seed), self.named(batch)))

    @property
    def opaque_ops(self) -> list:
        """The ops without a row: they run, but whole on every rank."""
        return [op for op in self.ops if "axes" not in op and not library().has_row(op["target"])]

    @property
    def inferred_ops(self) -> list:
        """The ops that are split by rows which experiments found while capturing: assumptions."""
        return [op for op in self.ops if op.get("inferred") and not library().has_row(op["target"])]

    def weights(self, module, seed: int = 0) -> dict:
        """Parameters and buffers of `module` and the constants of the step, by name."""
        state = {**dict(module.named_parameters()), **dict(module.named_buffers()), **self.constants}
        if any(t["name"] == STATE for t in self.tensors):
            state[STATE] = torch.tensor(seed << 32)
        return {name: value.detach() for name, value in state.items()}

    def names(self, role: str) -> list:
        """Of its parameters, buffers or batch inputs."""
        return [t["name"] for t in self.tensors if t.get("role") == role]

    @property
    def held(self) -> set:
        """The parameters and buffers that ranks hold: those that some op reads or a step changes."""
        read = {number for op in self.ops for number in _tensors_in([op["args"], list(op.get("kwargs", {}).values())])}
        changed = {number for pairs in (self.gradients, self.buffers) for number, _ in pairs}
        return {self.tensors[number]["name"] for number in read | changed
                if self.tensors[number].get("role") in ("parameter", "buffer")}

    @property
    def trained(self) -> list:
        """The parameters that a step updates."""
        return [self.tensors[parameter]["name"] for parameter, _ in self.gradients]

    @property
    def updated_buffers(self) -> list:
        return [self.tensors[buffer]["name"] for buffer, _ in self.buffers]

    def named(self, batch) -> dict:
        """A batch in the form it was captured with -> its tensors by name."""
        names = self.names("batch")
        check_tensors(batch)
        if isinstance(batch, Mapping):
            # A name that a parameter has too was captured as batch.NAME.
            given = {f"batch.{n}" if n not in names and f"batch.{n}" in names else n: v
                     for n, v in batch.items() if isinstance(v, torch.Tensor)}
        else:
            given = dict(enumerate(v for v in batch if isinstance(v, torch.Tensor)))
            given = dict(zip(names, given.values())) if len(given) == len(names) else given
        if given.keys() != set(names):
            raise InputError("batch", f"it has {', '.join(map(str, given)) or 'no tensor'}",
                             f"give {', '.join(names)}, as the step was captured with")
        return given


def _tensors_in(value):
    """The numbers of the tensors that an argument names."""
    if isinstance(value, list):
        return [number for item in value for number in _tensors_in(item)]
    return [int(value[1:])] if isinstance(value, str) and value.startswith("%") else []


def _lines(rows) -> str:
    return "[\n  " + ",\n  ".join(json.dumps(row) for row in rows) + "\n ]" if rows else "[]"


def argument(value, op, written):
    """One argument of `op` as the file writes it; `written` has the text of every graph node before it."""
    kind = next((kind for kind, cls in KINDS.items() if isinstance(value, cls)), None)
    if kind is not None:
        return f"{kind}:{str(value).removeprefix('torch.')}"
    if isinstance(value, (list, tuple)):
        return [argument(item, op, written) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return f"float:{value}"
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, torch.fx.Node):
        return written[value]
    raise InputError(op, f"an argument is a {type(value).__name__}, which a captured step cannot hold",
                     "give it as a tensor or a plain number")


KINDS = {"dtype": torch.dtype, "device": torch.device, "layout": torch.layout, "memory_format": torch.memory_format,
         "str": str}
