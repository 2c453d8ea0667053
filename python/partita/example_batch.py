"""A batch for a Hugging Face model, made from its config: the kinds of inputs and labels of its task.

Values do not matter to a step that is captured, but for the range of whole numbers.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from .errors import InputError

USUAL_SEQ = 1024
USUAL_SIDE = 224  # of an image, for networks that take any


@dataclass
class Sizes:
    """What the command line says of a batch; `seq` is None where it says nothing."""

    batch: int
    seq: int | None
    dtype: torch.dtype  # of images


def tokens(config, sizes):
    shape, limit = (sizes.batch, _length(config, sizes)), _text(config).vocab_size
    return {"input_ids": _whole(shape, limit), "labels": _whole(shape, limit)}


def classified_text(config, sizes):
    return {"input_ids": tokens(config, sizes)["input_ids"], "labels": _whole((sizes.batch,), config.num_labels)}


def classified_tokens(config, sizes):
    ids = tokens(config, sizes)["input_ids"]
    return {"input_ids": ids, "labels": _whole(ids.shape, config.num_labels)}


def answered(config, sizes):
    ids = tokens(config, sizes)["input_ids"]
    places = {key: _whole((sizes.batch,), ids.shape[1]) for key in ("start_positions", "end_positions")}
    return {"input_ids": ids, **places}


def classified_images(config, sizes):
    if sizes.seq is not None:
        raise InputError("--seq", "an image model has no sequence length", "leave it out")
    side = getattr(config, "image_size", USUAL_SIDE)
    height, width = side if isinstance(side, (list, tuple)) else (side, side)
    images = torch.empty(sizes.batch, config.num_channels, height, width, dtype=sizes.dtype)
    return {"pixel_values": images, "labels": _whole((sizes.batch,), config.num_labels)}


@dataclass
class Task:
    """One row: transformers' table of the classes for a task, and the batch they train on."""

    table: str
    batch: Callable


# In the order in which a config that names no class is given one.
TASKS = [Task("MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES", tokens),
         Task("MODEL_FOR_MASKED_LM_MAPPING_NAMES", tokens),
         Task("MODEL_FOR_CAUSAL_LM_MAPPING_NAMES", tokens),
         Task("MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES", classified_images),
         Task("MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES", classified_text),
         Task("MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING_NAMES", classified_tokens),
         Task("MODEL_FOR_QUESTION_ANSWERING_MAPPING_NAMES", answered)]


def task_of(name: str) -> Task | None:
    """The row that a class belongs to; None where it has no task of these."""
    return next((task for task in TASKS if name in _classes(task).values()), None)


def usual_class(model_type: str) -> str | None:
    """The class of the first task that this type of model has."""
    return next((_classes(task)[model_type] for task in TASKS if model_type in _classes(task)), None)


def _classes(task):
    from transformers.models.auto import modeling_auto

    rows = getattr(modeling_auto, task.table)
    return {key: value[0] if isinstance(value, (list, tuple)) else value for key, value in rows.items()}


def _text(config):
    return config.get_text_config()


def _length(config, sizes):
    most = getattr(_text(config), "max_position_embeddings", None) or USUAL_SEQ
    return sizes.seq or min(USUAL_SEQ, most)


def _whole(shape, limit):
    """Whole numbers whose least and largest show the range, as capture reads it off values that index nothing."""
    values = torch.zeros(tuple(shape), dtype=torch.int64)
    values.view(-1)[0] = limit - 1
    return values
