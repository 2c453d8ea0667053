"""Finds what `make build` leaves in the build tree: the compiled part of the package, and the command."""

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
    return _load(_find("_partita.so", _folders()))


def command() -> Path:
    """The command `partita` of the same build."""
    return _find("partita", [folder.parent / "bin" for folder in _folders()])


def _folders():
    given = os.environ.get(VARIABLE)
    return [Path(given)] if given else [HERE, HERE.parents[1] / "build" / "full" / "lib"]


def _find(name, folders):
    for folder in folders:
        if (folder / name).exists():
            return folder / name
    raise InputError("partita", f"{name} is not in {' or '.join(map(str, folders))}",
                     f"run `make build`, or set {VARIABLE} to the lib folder of a build")


def _load(path):
    name = f"{__package__}._partita"
    spec = importlib.util.spec_from_file_location(name, path)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
