"""A Hugging Face config.json -> its captured training step. No weights are made: the module is built of fake tensors."""

import warnings
from dataclasses import dataclass

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from .capture import capture
from .config_file import config_path, read_config
from .errors import InputError
from .example_batch import Sizes, task_of, usual_class
from .model import Model

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32, "fp64": torch.float64,
          **{name: getattr(torch, name) for name in ("bfloat16", "float16", "float32", "float64")}}
ATTENTION = ("eager", "sdpa")


@dataclass
class Built:
    """A module without weights, a batch for it, and what a reader should know of them."""

    module: torch.nn.Module
    batch: dict
    notes: list


def from_config(path, batch: int = 8, seq: int | None = None, dtype: str | None = None) -> Model:
    """Captures the training step of the model that a config.json (or its folder) describes, without weights.

    batch, seq: the global batch and the sequence length; seq None takes 1024, or what the model's positions hold.
    dtype: bf16, fp16, float32, float64; None takes the config's own, or float32.
    What the config leaves out or misspells comes as a warning.
    """
    built = build(path, batch, seq, dtype)
    for note in built.notes:
        warnings.warn(note, stacklevel=2)
    return capture(built.module, built.batch)


def build(path, batch: int, seq: int | None, dtype: str | None) -> Built:
    """The module, of fake tensors, and a batch for it."""
    try:
        import transformers
    except ImportError as error:
        raise InputError("capture", "this python has no transformers", "install it: pip install transformers") from error
    transformers.utils.logging.set_verbosity_error()
    path = config_path(path)
    config, notes = read_config(path)
    kind = _class_of(path, config, notes)
    chosen = _dtype_of(path, config, dtype, notes)
    module = _construct(path, kind, config, chosen)
    made = task_of(kind.__name__).batch(config, Sizes(batch, seq, chosen))
    _check_positions(module, made)
    return Built(module.train(), made, notes)


def _class_of(path, config, notes):
    """The class that the config names; one with a loss where that has none."""
    import transformers

    named = (config.architectures or [None])[0]
    several = [key for key in ("vision_config", "audio_config") if getattr(config, key, None) is not None]
    if several:
        raise InputError(f"{path}: {several[0]}", "a model of several modalities has no batch that its config alone says",
                         "give the config of its text model, or build module and batch in a function: FILE.py:FUNCTION")
    usual = usual_class(config.model_type)
    if named and task_of(named):
        return getattr(transformers, named)
    headless = named is None or named.endswith("Model")
    if headless and usual:
        notes.append(f"{path}: {f'{named} has no loss' if named else 'architectures not given'}, {usual} taken")
        return getattr(transformers, usual)
    raise InputError(f"{path}: architectures", f"no batch can be made for {named or config.model_type} from its config alone",
                     "build module and batch in a function and give FILE.py:FUNCTION")


def _dtype_of(path, config, dtype, notes):
    if dtype is None:
        own = config.dtype or config.get_text_config().dtype
        own = getattr(torch, own) if isinstance(own, str) else own
        if own not in (None, *DTYPES.values()):
            raise InputError(f"{path}: dtype", f"{own} is no dtype that a step is captured in", "give --dtype bf16")
        if own not in (None, torch.float32):
            name = str(own).removeprefix('torch.')
            notes.append(f"{path}: dtype {name} taken as --dtype {name}")
        return own or torch.float32
    if dtype not in DTYPES:
        raise InputError("--dtype", f'unknown dtype "{dtype}"', f"give one of {', '.join(DTYPES)}")
    return DTYPES[dtype]


def _construct(path, kind, config, dtype):
    attention = getattr(config, "_attn_implementation", None)
    if attention not in (None, *ATTENTION):
        raise InputError(f"{path}: attn_implementation", f'"{attention}" has no form that traces on the cpu',
                         f"write one of {', '.join(ATTENTION)}, or leave the key out")
    try:
        # On the meta device and not in FakeTensorMode: transformers itself loads models so, and every class can.
        with torch.device("meta"):
            module = kind._from_config(config, dtype=dtype)
    except Exception as error:  # whatever a constructor finds wrong with its config
        what = str(error).strip().splitlines() or [type(error).__name__]
        raise InputError(str(path), f"{kind.__name__} cannot be built: {what[0]}", "correct the config") from error
    with FakeTensorMode(allow_non_fake_inputs=True):
        return _fake(module)


def _check_positions(module, batch):
    """Fake tensors look nothing up, so a sequence beyond a table of positions would trace without a word."""
    length = batch["input_ids"].shape[1] if "input_ids" in batch else 0
    most = getattr(module.config.get_text_config(), "max_position_embeddings", None)
    learned = [name for name, part in module.named_modules() if isinstance(part, torch.nn.Embedding)
               and ("position" in name or name.endswith("wpe"))]
    if most and learned and length > most:
        raise InputError(f"--seq {length}", f"{learned[0]} holds {most} positions", f"take --seq {most} or less")


def _fake(module):
    """Puts a fake tensor of the cpu into the place of every parameter and buffer; what is tied stays tied."""
    fakes = {}

    def fake(value):
        if id(value) not in fakes:
            empty = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="cpu")
            kept = torch.nn.Parameter(empty, value.requires_grad) if isinstance(value, torch.nn.Parameter) else empty
            fakes[id(value)] = (value, kept)  # the old one too: its id must not be given to another
        return fakes[id(value)][1]

    for part in module.modules():
        for values in (part._parameters, part._buffers):
            values.update({name: fake(value) for name, value in values.items() if value is not None})
    return module
