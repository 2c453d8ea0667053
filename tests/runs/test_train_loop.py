"""examples/train_loop.py: the loop people write, beside plain PyTorch, and stopped and gone on."""

import re
import sys

import pytest

from conftest import ROOT

sys.path.append(str(ROOT / "examples"))

import train_loop  # noqa: E402

SHORT = ["--samples", "50", "--ranks", "2"]


def printed(capsys, monkeypatch, *flags):
    monkeypatch.setattr(sys, "argv", ["train_loop.py", *SHORT, *flags])
    train_loop.main()
    return capsys.readouterr().out.splitlines()


def numbers(lines):
    return [float(re.search(r"(?:loss|evaluation|average) (\S+)", line)[1]) for line in lines]


@pytest.mark.parametrize("variant", ["gpt", "lora", "batchnorm"])
def test_losses_are_those_of_plain_pytorch(variant, capsys, monkeypatch):
    flags = ["--variant", variant, "--epochs", "2"]
    got, want = (numbers(printed(capsys, monkeypatch, *flags, *more)) for more in ([], ["--plain"]))
    assert len(got) == 2 * (3 + 1) + 1
    assert got == pytest.approx(want, abs=1e-5)


@pytest.mark.parametrize("variant", ["gpt", "batchnorm"])
def test_stopped_and_gone_on_it_prints_the_same_bits(variant, capsys, monkeypatch, tmp_path):
    flags = ["--variant", variant, "--epochs", "2", "--dropout", "0.1"]
    whole = printed(capsys, monkeypatch, *flags)
    saved = ["--checkpoint", str(tmp_path / "run.pt")]
    first = printed(capsys, monkeypatch, *flags, *saved, "--stop-after", "1")
    rest = printed(capsys, monkeypatch, *flags, *saved)
    assert first[:-1] + rest == whole  # the average of the part is not that of the whole
