"""Finds the compiled part of the package, `_partita`, which `make build` leaves in the build tree."""

import importlib.util
import os
import sys
from functools import cache
from pathlib import Path

from .errors import InputError

HERE = Path(__file__).resolve().parent
VARIABLE = "PARTITA_LIBRARY_DIR"


@cache
def library():
    """The compiled module: from PARTITA_LIBRARY_DIR if that is set, else beside this file, else from build/full."""
    given = os.environ.get(VARIABLE)
    folders = [Path(given)] if given else [HERE, HERE.parents[1] / "build" / "full" / "lib"]
    for folder in folders:
        path = folder / "_partita.so"
        if path.exists():
            return _load(path)
    raise InputError("partita", f"the compiled part _partita.so is not in {' or '.join(map(str, folders))}",
                     f"run `make build`, or set {VARIABLE} to the folder that has it")


def _load(path):
    name = f"{__package__}._partita"
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
