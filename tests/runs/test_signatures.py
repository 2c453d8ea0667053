"""The signature that a row states is what the schema of PyTorch says, for every row."""
import torch

from partita.native import library

ANY_NUMBER = -1  # one list


def schema_of(target):
    _, name, overload = target.split(".")
    schema = getattr(getattr(torch.ops.aten, name), overload)._schema
    spreads = any(isinstance(one.type, torch.ListType) for one in schema.returns)
    return " ".join(one.name for one in schema.arguments), ANY_NUMBER if spreads else len(schema.returns)


def test_every_row_has_the_signature_of_its_schema():
    stated = library().signatures()
    assert len(stated) > 300
    assert stated == {target: schema_of(target) for target in stated}
