"""Asks a verb of the command in this process: its flags, answers and messages are those of the command line."""

from pathlib import Path

from .errors import InputError
from .model import SUFFIX, Model
from .native import library

MODEL, PLAN = f"step{SUFFIX}", "plan.json"  # words that stand for values instead of files


def ask(*words, model=None, plan=None, texts=None, progress=None, **flags) -> str:
    """What `partita WORDS --FLAGS` prints. A flag that is None or False is left out.

    model, plan: what the words MODEL and PLAN mean; texts: of other files that are not on the disk.
    progress: called with phase, done, all (0 where nobody knows) and the best seconds of a step so far, or None.
    """
    models = {MODEL: model.handle()} if isinstance(model, Model) else {}
    constants = {name: value.detach().contiguous() for name, value in model.constants.items()} if models else {}
    where = {name: (list(value.shape), str(value.dtype).removeprefix("torch."), value.data_ptr())
             for name, value in constants.items()}
    texts = {**(texts or {}), **({PLAN: plan.to_json()} if plan is not None else {})}
    return library().ask([*map(str, words), *_words_of(flags)], models, where, texts, progress).rstrip("\n")


def word_of(model) -> str:
    """The word for a Model, or for what the command takes as MODEL: a preset, a config.json, a captured file."""
    if isinstance(model, Model):
        return MODEL
    if isinstance(model, (str, Path)):
        return str(model)
    raise InputError("model", f"it is a {type(model).__name__}", "give what partita.capture returned, or the name of a preset or a file")


def _words_of(flags) -> list:
    words = []
    for flag, value in flags.items():
        if value is not None and value is not False:
            words += [f"--{flag.replace('_', '-')}", *([] if value is True else [str(value)])]
    return words
