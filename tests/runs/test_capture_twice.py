"""The same module and batch give the same bytes in any process.

The whole zoo: python tests/parity/capture_twice.py
"""

import pytest

import capture_twice
import partita
from zoo import ZOO

SHARE = ["lstm", "gru", "lstm, both ways", "llama", "t5", "deepseek_v3", "resnet", "u-net", "several losses"]


def test_two_processes_give_the_same_bytes():
    assert capture_twice.capture_twice(SHARE) == {}


def test_an_lstm_captured_twice_keeps_its_two_bias_gradients_apart():
    case = ZOO["lstm"]
    first, second = (partita.capture(*case.make(), case.loss) for _ in range(2))
    assert first.to_json() == second.to_json()
    made = [gradient for _, gradient in first.gradients]
    assert len(set(made)) == len(made)


# DeBERTa has scripted functions, whose ops TorchScript reorders after some calls; BEiT keeps a table in a cache of the process.
@pytest.mark.parametrize("name", ["deberta", "beit"])
def test_earlier_forwards_do_not_matter(name):
    module, batch = ZOO[name].make()
    first = partita.capture(module, batch).to_json()
    for _ in range(3):
        module(**batch)
    assert partita.capture(module, batch).to_json() == first
