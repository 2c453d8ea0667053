"""One captured training step, and its file (docs/formats/model.md)."""

import json
import math
from dataclasses import dataclass, field
from pathlib import Path

import torch

from .errors import InputError

VERSION = 1
SUFFIX = ".model.json"


@dataclass
class Model:
    """A training step as an ATen graph. `tensors` and `ops` hold what the file holds, one dict per line."""

    name: str
    tensors: list
    ops: list
    loss: int
    gradients: list
    buffers: list
    constants: dict = field(default_factory=dict)  # name -> value

    def to_json(self) -> str:
        head = json.dumps({"format": "partita.model", "version": VERSION, "name": self.name,
                           "torch": torch.__version__.split("+")[0]})
        tail = json.dumps({"loss": self.loss, "gradients": self.gradients, "buffers": self.buffers})
        return (f'{head[:-1]},\n "tensors": {_lines(self.tensors)},\n "ops": {_lines(self.ops)},\n {tail[1:]}\n')

    def save(self, path) -> None:
        """Writes `path`, and NAME.constants.safetensors beside it when the step has constants."""
        path = Path(path)
        if not path.name.endswith(SUFFIX):
            raise InputError(str(path), "a captured model needs a name that the command recognises",
                             f"call it {path.name.split('.')[0]}{SUFFIX}")
        path.write_text(self.to_json())
        if self.constants:
            from safetensors.torch import save_file

            values = {name: value.detach().contiguous().clone() for name, value in self.constants.items()}
            save_file(values, path.with_name(path.name.removesuffix(SUFFIX) + ".constants.safetensors"))


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
