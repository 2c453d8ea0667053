"""One model of the zoo, and how a Hugging Face config becomes a small one without randomness."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

import torch
import transformers

VOCABULARY, BATCH, SEQUENCE, LABELS = 96, 2, 16, 3


@dataclass
class Case:
    """`build` and `batch` draw from torch's generator; `around` is the context the step runs in, such as autocast."""

    name: str
    build: Callable[[], torch.nn.Module]
    batch: Callable[[], object]
    loss: Callable | None = None
    around: Callable = contextlib.nullcontext
    bake: bool = False
    note: str = ""

    @property
    def family(self) -> str:
        return self.name.split(",")[0]

    def make(self):
        """The module in training mode, with no parameter left at zero, and its batch; the same on every call."""
        torch.manual_seed(0)
        module = self.build().train()
        with torch.no_grad():
            for parameter in module.parameters():
                if parameter.is_floating_point():
                    parameter.add_(torch.randn_like(parameter), alpha=0.01)
        return module, self.batch()


# Sizes by the names that configs use; a config takes those it knows.
SMALL = {
    "vocab_size": VOCABULARY, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 64,
    "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "n_inner": 48, "d_model": 32, "d_ff": 48, "d_kv": 8,
    "num_layers": 2, "num_heads": 4, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "ffn_dim": 48,
    "word_embed_proj_dim": 32, "embedding_size": 16, "d_inner": 48, "rotary_dim": 4, "image_size": 16, "patch_size": 4,
    "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "decoder_start_token_id": 1,
    "num_experts": 4, "num_local_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24,
    "shared_expert_intermediate_size": 24, "num_channels": 3, "max_seq_len": 64, "n_heads": 4, "n_layers": 2, "dim": 32,
    "hidden_dim": 48, "kv_channels": 8, "attention_head_size": 8,
}


def small_config(name: str, **sizes):
    """`transformers.<name>` with small sizes and everything random switched off; `sizes` come last."""
    cls = getattr(transformers, name)
    known = vars(cls())
    names = {key: cls.attribute_map.get(key, key) for key in SMALL}
    config = cls(**{**{key: value for key, value in SMALL.items() if names[key] in known}, "num_labels": LABELS, **sizes})
    _still(config)
    return config


def _still(config):
    for key, value in list(vars(config).items()):
        if isinstance(value, transformers.PretrainedConfig):
            _still(value)
        elif "drop" in key and isinstance(value, float):
            setattr(config, key, 0.0)
        elif key in ("apply_spec_augment", "use_cache"):
            setattr(config, key, False)


def hugging_face(name, model, batch, config=None, loss=None, bake=False, note="", **sizes) -> Case:
    """`model` of transformers, on `batch`; its config is named after it unless `config` says otherwise."""
    def build():
        cls = getattr(transformers, model)
        return cls(small_config(config or cls.config_class.__name__, **sizes))

    return Case(name, build, batch, loss, bake=bake, note=note)


def ids(vocabulary=VOCABULARY, sequence=SEQUENCE, low=3, rows=BATCH):
    return torch.randint(low, vocabulary, (rows, sequence))


def causal(sequence=SEQUENCE, rows=BATCH):
    """Token ids as their own labels, some of them ignored."""
    tokens = ids(sequence=sequence, rows=rows)
    labels = tokens.clone()
    labels[0, :5] = -100
    return {"input_ids": tokens, "labels": labels}


def causal_rows():
    """Enough rows for micro-batches."""
    return causal(rows=4)


def masked():
    """Token ids with labels and an attention mask that hides the end of one row."""
    mask = torch.ones(BATCH, SEQUENCE, dtype=torch.int64)
    mask[1, -4:] = 0
    return {**causal(), "attention_mask": mask}


def translated():
    return {"input_ids": ids(), "labels": ids(sequence=SEQUENCE - 4)}


def images(channels=3, size=16, labels=3, rows=BATCH):
    def batch():
        return {"pixel_values": torch.randn(rows, channels, size, size), "labels": torch.randint(0, labels, (rows,))}
    return batch
