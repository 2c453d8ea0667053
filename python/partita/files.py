"""Files that are whole or not there.

A file is written beside its place and then renamed, which is all or nothing: a reader, a full disk or a machine that
loses power sees the old file or the new one, never half of one. `src/base/file.cc` does the same for the command.
"""

import contextlib
import itertools
import os
import stat
from pathlib import Path

from .errors import InputError

_numbers = itertools.count()


@contextlib.contextmanager
def beside(path):
    """Gives a name to write to; it becomes `path` when the block ends, and is removed where the block raises.

    A link at `path` stays, and its target is replaced; permissions of a file that was there are kept.
    OSError becomes an InputError that names `path`. REQUIRES: what is at `path` is a regular file, or nothing.
    """
    target = Path(os.path.realpath(path))
    temporary = target.parent / f".partita-{os.getpid()}-{next(_numbers)}.part"
    try:
        if target.is_dir():
            raise IsADirectoryError(21, "Is a directory")
        yield temporary
        _replace(temporary, target)
    except OSError as error:
        raise InputError(str(path), f"cannot write this file: {error.strerror or error}", _hint(error)) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()


def write_whole(path, data) -> None:
    """Writes text (as UTF-8) or bytes to `path`, whole or not at all; a pipe or a device directly."""
    data = data.encode() if isinstance(data, str) else data
    if _is_special(path):
        try:
            with open(path, "wb") as file:
                file.write(data)
        except OSError as error:
            raise InputError(str(path), f"cannot write this file: {error.strerror}", _hint(error)) from error
        return
    with beside(path) as temporary, open(temporary, "xb") as file:
        file.write(data)


def save_tensors(tensors, path, metadata=None) -> None:
    """Like safetensors.torch.save_file, whole or not at all."""
    from safetensors.torch import save_file

    with beside(path) as temporary:
        try:
            save_file(tensors, temporary, metadata=metadata)
        except OSError:
            raise
        except Exception as error:  # safetensors has one of its own for what the system refuses
            if "I/O error" not in str(error) and "IoError" not in str(error):
                raise
            raise OSError(0, str(error)) from error


def _is_special(path) -> bool:
    """Something that is there and is neither a regular file nor a folder."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _replace(temporary: Path, target: Path) -> None:
    """The bytes are on the disk before the name is: a machine may stop in between."""
    with contextlib.suppress(FileNotFoundError):
        os.chmod(temporary, stat.S_IMODE(target.stat().st_mode))
    _sync(temporary, os.O_RDWR)
    os.replace(temporary, target)
    _sync(target.parent, os.O_RDONLY | os.O_DIRECTORY)


def _sync(path: Path, flags: int) -> None:
    file = os.open(path, flags)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _hint(error: OSError) -> str:
    hints = {
        "FileNotFoundError": "does its folder exist?",
        "NotADirectoryError": "does its folder exist?",
        "IsADirectoryError": "name a file in this folder",
        "PermissionError": "write to a folder of your own",
    }
    return hints.get(type(error).__name__, "free some space or write elsewhere")
