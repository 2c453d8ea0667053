"""Rewrites the captured models beside this file: `PYTHONPATH=python python tests/data/make_models.py`."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "python"))

import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

import partita

VOCABULARY, SEQUENCE = 96, 16


def gpt2(layers):
    return GPT2LMHeadModel(GPT2Config(n_layer=layers, n_embd=64, n_head=4, vocab_size=VOCABULARY,
                                      n_positions=SEQUENCE, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0,
                                      bos_token_id=0, eos_token_id=0))


def llama(layers):
    return LlamaForCausalLM(LlamaConfig(num_hidden_layers=layers, hidden_size=64, num_attention_heads=4,
                                        num_key_value_heads=2, intermediate_size=96, vocab_size=VOCABULARY,
                                        max_position_embeddings=SEQUENCE, bos_token_id=0, eos_token_id=0))


# file name -> (how to build it, layers, batch)
MODELS = {
    "gpt2-tiny": (gpt2, 2, 4),
    "gpt2-tiny4": (gpt2, 4, 8),
    "llama-tiny": (llama, 2, 4),
    "llama-tiny4": (llama, 4, 8),
}


def make(name):
    build, layers, batch = MODELS[name]
    ids = torch.arange(batch * SEQUENCE).reshape(batch, SEQUENCE) % VOCABULARY
    model = partita.capture(build(layers), {"input_ids": ids, "labels": ids})
    model.name = name
    return model


if __name__ == "__main__":
    for name in MODELS:
        model = make(name)
        model.save(HERE / f"{name}.model.json")
        print(f"{name}: {len(model.ops)} ops, {len(model.tensors)} tensors")
