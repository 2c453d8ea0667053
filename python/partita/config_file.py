"""A Hugging Face config.json -> transformers' config, and what a reader should know of it."""

import difflib
import json
import re
from pathlib import Path

from .errors import InputError

SIZE = re.compile(r"_size$|_layers$|_heads$|_dim$|_experts$|^n_|^d_|^num_|^depths$")
# Written into config.json by transformers 4 and its tools; no class declares them and none changes a training step.
GENERIC = {"_attn_implementation", "_commit_hash", "attn_implementation", "auto_map", "finetuning_task", "pretraining_tp",
           "prefix", "pruned_heads", "quantization_config", "task_specific_params", "tie_encoder_decoder",
           "tf_legacy_loss", "tie_word_embeddings", "tokenizer_class", "torch_dtype", "torchscript", "use_bfloat16",
           "use_cache", "bos_token_id", "cls_token_id", "decoder_start_token_id", "eos_token_id", "mask_token_id",
           "pad_token_id", "sep_token_id", "unk_token_id", "rope_theta", "rope_scaling", "initializer_range",
           "bad_words_ids", "begin_suppress_tokens", "diversity_penalty", "do_sample", "early_stopping",
           "encoder_no_repeat_ngram_size", "exponential_decay_length_penalty", "forced_bos_token_id",
           "forced_eos_token_id", "gradient_checkpointing", "length_penalty", "max_length", "min_length",
           "no_repeat_ngram_size", "num_beam_groups", "num_beams", "num_labels", "num_return_sequences", "output_past",
           "output_scores", "remove_invalid_values", "repetition_penalty", "return_dict_in_generate", "suppress_tokens",
           "temperature", "top_k", "top_p", "typical_p"}


def read_config(path: Path) -> tuple:
    """(config, notes) of a config.json. Nothing is downloaded, no code of it is run."""
    given = _json(path)
    kind = _class_of(path, given)
    try:
        config = kind.from_dict(dict(given))
    except Exception as error:  # transformers checks types with classes of its own
        raise InputError(str(path), f"{kind.__name__} refuses it: {str(error).strip().splitlines()[0]}",
                         "correct that key") from error
    return config, [f"{path}: {note}" for note in _notes(given, config)]


def config_path(path) -> Path:
    """The file: a folder stands for the config.json in it."""
    path = Path(path)
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise InputError(str(path), "this folder holds no config.json", "give the folder of a Hugging Face model")
        return path / "config.json"
    if not path.is_file():
        raise InputError(str(path), "there is no such file, and nothing is downloaded",
                         "give a config.json, its folder, or FILE.py:FUNCTION")
    return path


def _json(path):
    try:
        given = json.loads(path.read_text())
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError(str(path), f"this is not JSON: {error}", "give the config.json of a Hugging Face model") from error
    if not isinstance(given, dict) or not isinstance(given.get("model_type"), str):
        raise InputError(str(path), "there is no model_type, so this is not a Hugging Face config",
                         "give the config.json of a model")
    return given


def _class_of(path, given):
    import transformers
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    name = given["model_type"]
    if name not in CONFIG_MAPPING:
        near = difflib.get_close_matches(name, CONFIG_MAPPING.keys(), 1)
        hint = f"; did you mean '{near[0]}'?" if near else ""
        raise InputError(f"{path}: model_type", f"transformers {transformers.__version__} has no '{name}', and code that "
                         "comes with a model is not run", f"build it in a function and give FILE.py:FUNCTION{hint}")
    return CONFIG_MAPPING[name]


def _notes(given, config):
    kind, taken_all = type(config), config.to_dict()
    usual, alias = kind().to_dict(), kind.attribute_map
    named = set(given) | {alias.get(key, key) for key in given}
    # One that differs from the class's default was derived from others, and its absence says nothing.
    taken = [f"{key} not given, {value} taken" for key, value in usual.items()
             if SIZE.search(key) and key not in named and _is_size(value) and taken_all.get(key) == value]
    if taken:
        yield f"{'; '.join(taken)} (Hugging Face's default{'s' if len(taken) > 1 else ''})"
    known = [*usual, *alias, *sorted(GENERIC)]
    for key in given:
        if key not in known:
            near = difflib.get_close_matches(key, known, 1, cutoff=0.8)
            yield f"{key}: not a key of {kind.__name__}{f'; did you mean {near[0]!r}?' if near else ''}"
    if given.get("quantization_config"):
        yield "quantization_config left out: the step is that of the model before it was quantized"


def _is_size(value):
    values = value if isinstance(value, (list, tuple)) else [value]
    return bool(values) and all(isinstance(v, int) and not isinstance(v, bool) and v > 0 for v in values)
