"""The table of signatures (src/model/ops/signatures.cc) is what PyTorch's schemas say, for every row."""
import re
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[2]


def line_of(target):
    _, name, overload = target.split(".")
    schema = getattr(getattr(torch.ops.aten, name), overload)._schema
    spreads = any(isinstance(one.type, torch.ListType) for one in schema.returns)
    arguments = " ".join(one.name for one in schema.arguments)
    return f'{{"{target}", "{arguments}", {"kAnyNumber" if spreads else len(schema.returns)}}},'


def test_every_row_has_the_signature_of_its_schema():
    targets = sorted(set(re.findall(r"`(aten\.[A-Za-z_0-9.]+)`", (ROOT / "docs/evidence/rows.md").read_text())))
    table = [line.strip() for line in (ROOT / "src/model/ops/signatures.cc").read_text().splitlines() if '{"aten.' in line]
    assert len(targets) > 150
    assert table == [line_of(target) for target in targets]
