"""Captures small models that Partita does not build, for plan_campaign: with dropout, and with BatchNorm.

    PYTHONPATH=python python bench/plan_models.py FOLDER [SEED]
    plan_campaign 10000 1 0 FOLDER/*.model.json
"""

import random
import sys
from pathlib import Path

import torch
import transformers as hf

import partita

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "data"))
import make_models

ENDS = dict(bos_token_id=0, eos_token_id=0, pad_token_id=0)


def text(model, draw, vocabulary):
    ids = torch.randint(1, vocabulary, (draw.randint(2, 6), draw.randint(3, 7)))
    return partita.capture(model, {"input_ids": ids, "labels": ids})


def sizes(draw):
    heads = draw.randint(2, 4)
    return heads, heads * 2 * draw.randint(1, 3), draw.randint(11, 30)


def gpt2(draw):
    heads, hidden, vocabulary = sizes(draw)
    return text(hf.GPT2LMHeadModel(hf.GPT2Config(n_layer=draw.randint(1, 2), n_embd=hidden, n_head=heads, vocab_size=vocabulary,
                                                 n_positions=8, resid_pdrop=0.2, embd_pdrop=0.1, attn_pdrop=0, bos_token_id=0,
                                                 eos_token_id=0)), draw, vocabulary)


def bert(draw):
    heads, hidden, vocabulary = sizes(draw)
    return text(hf.BertForMaskedLM(hf.BertConfig(num_hidden_layers=1, hidden_size=hidden, num_attention_heads=heads,
                                                 intermediate_size=draw.randint(5, 20), vocab_size=vocabulary,
                                                 max_position_embeddings=8, hidden_dropout_prob=0.2,
                                                 attention_probs_dropout_prob=0)), draw, vocabulary)


def t5(draw):
    heads, hidden, vocabulary = sizes(draw)
    return text(hf.T5ForConditionalGeneration(hf.T5Config(num_layers=1, num_decoder_layers=1, d_model=hidden, num_heads=heads,
                                                          d_kv=hidden // heads, d_ff=draw.randint(5, 20), vocab_size=vocabulary,
                                                          dropout_rate=0.1, decoder_start_token_id=0)), draw, vocabulary)


def resnet(draw):
    module = hf.ResNetForImageClassification(hf.ResNetConfig(embedding_size=draw.randint(3, 6), hidden_sizes=[4, draw.randint(5, 9)],
                                                             depths=[1, 1], layer_type="basic", num_labels=5))
    batch = draw.randint(2, 6)
    return partita.capture(module, {"pixel_values": torch.randn(batch, 3, 16, 16), "labels": torch.arange(batch) % 5})


def convnet(draw):
    return make_models.convnet(draw.randint(2, 7), draw.choice([17, 18, 19]))


MAKERS = [gpt2, bert, t5, resnet, convnet]


def main(folder, seed=1, each=4):
    draw = random.Random(int(seed))
    torch.manual_seed(int(seed))
    for make in MAKERS:
        for number in range(each):
            model = make(draw)
            model.name = f"{make.__name__}-{number}"
            model.save(Path(folder) / f"{model.name}.model.json")
            print(f"{model.name}: {len(model.ops)} ops")


if __name__ == "__main__":
    main(*sys.argv[1:])
