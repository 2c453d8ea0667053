"""Captures small models that Partita does not build, for plan_campaign: with dropout, with BatchNorm, mixtures with a
shared expert, U-Nets, an LSTM, and ops whose rows experiments find.

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
sys.path[:0] = [str(HERE.parent / "tests" / folder) for folder in ("data", "parity")]
import make_models
from zoo import images

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


def decoder(draw):
    """Keys that the mixtures share."""
    heads, hidden, vocabulary = sizes(draw)
    return dict(num_hidden_layers=draw.randint(1, 2), hidden_size=hidden, num_attention_heads=heads, vocab_size=vocabulary,
                intermediate_size=draw.randint(5, 20), max_position_embeddings=16, num_experts_per_tok=2,
                num_key_value_heads=heads, moe_intermediate_size=draw.randint(3, 9), attention_dropout=0.0,
                experts_implementation="batched_mm", **ENDS)


def qwen2_moe(draw):
    """A shared expert behind a gate."""
    keys = decoder(draw)
    config = hf.Qwen2MoeConfig(**keys, num_experts=draw.randint(2, 5), shared_expert_intermediate_size=draw.randint(3, 9))
    return text(hf.Qwen2MoeForCausalLM(config), draw, keys["vocab_size"])


def deepseek_v3(draw):
    """Latent attention, a router by groups, a shared expert; the first layer may be dense."""
    keys = decoder(draw)
    config = hf.DeepseekV3Config(**keys, n_routed_experts=4, n_group=2, topk_group=draw.randint(1, 2), n_shared_experts=1,
                                 first_k_dense_replace=draw.randint(0, 1), kv_lora_rank=draw.randint(3, 6), q_lora_rank=5,
                                 qk_rope_head_dim=4, qk_nope_head_dim=draw.randint(2, 4), v_head_dim=3, head_dim=4)
    return text(hf.DeepseekV3ForCausalLM(config), draw, keys["vocab_size"])


def gpt_oss(draw):
    """Attention with sinks, a sliding window in every other layer, experts with biases."""
    keys = decoder(draw)
    config = hf.GptOssConfig(**keys, num_local_experts=draw.randint(2, 5), head_dim=4, sliding_window=4)
    return text(hf.GptOssForCausalLM(config), draw, keys["vocab_size"])


def images_of(draw, module, batch):
    """A captured net over as many images as are drawn."""
    return partita.capture(module, batch(draw.randint(2, 5)))


def u_net(draw):
    return images_of(draw, images.BilinearUNet(2 * draw.randint(1, 3)), images.labelled)


def u_net_batch_norm(draw):
    return images_of(draw, images.SegmentingUNet(draw.randint(2, 5)), images.labelled)


def u_net_diffusion(draw):
    return images_of(draw, images.DiffusionUNet(4 * draw.randint(1, 2)), images.noised)


class Recurrent(torch.nn.Module):
    def __init__(self, width, layers, vocabulary):
        super().__init__()
        self.words, self.head = torch.nn.Embedding(vocabulary, width), torch.nn.Linear(width, vocabulary)
        self.cell = torch.nn.LSTM(width, width, num_layers=layers, batch_first=True)

    def forward(self, input_ids, labels):
        scores = self.head(self.cell(self.words(input_ids))[0])
        return torch.nn.functional.cross_entropy(scores.flatten(0, 1), labels.flatten())


def lstm(draw):
    """In float64, as the campaign runs it: in float32 oneDNN has an op of its own."""
    vocabulary = draw.randint(11, 30)
    return text(Recurrent(draw.randint(4, 9), draw.randint(1, 2), vocabulary).double(), draw, vocabulary)


class Distances(torch.nn.Module):
    """Distances to learned points and a Bessel function: ATen ops whose rows experiments find. The points are copied for
    each sample: of others the kernel makes hidden copies, which no inferred row knows."""

    def __init__(self, width, points):
        super().__init__()
        self.enter, self.points = torch.nn.Linear(5, width), torch.nn.Parameter(torch.randn(points, width))
        self.head = torch.nn.Linear(points, 3)

    def forward(self, x, wanted):
        near = torch.cdist(torch.special.i0e(self.enter(x)), self.points.repeat(len(x), 1, 1), p=1.0)
        return torch.nn.functional.mse_loss(self.head(near), wanted)


def inferred(draw):
    rows, length = draw.randint(2, 6), draw.randint(3, 5)
    batch = {"x": torch.randn(rows, length, 5), "wanted": torch.randn(rows, length, 3)}
    model = partita.capture(Distances(draw.randint(4, 8), draw.randint(3, 6)), batch)
    assert model.inferred_ops
    return model


MAKERS = [gpt2, bert, t5, resnet, convnet, qwen2_moe, deepseek_v3, gpt_oss, u_net, u_net_batch_norm, u_net_diffusion, lstm,
          inferred]


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
