"""The compiled part is found where the build leaves it, and missed with a sentence that helps."""

import pytest

import partita
from partita import native


def test_missing_library(monkeypatch, tmp_path):
    monkeypatch.setenv(native.VARIABLE, str(tmp_path))
    for find in (native.library.__wrapped__, native.command):
        with pytest.raises(partita.InputError, match="make build"):
            find()
