"""Attention over chunks of its keys, merged by log-sum-exp, is the attention of the captured kernel."""

import math

import pytest
import torch
import transformers as hf

import partita

BATCH, HEADS, QUERIES, WIDTH = 2, 4, 6, 8


class Attend(torch.nn.Module):
    """Queries of one input meet keys of another, under a mask or none."""

    def __init__(self, mask=None, causal=False, key_heads=HEADS):
        super().__init__()
        self.query = torch.nn.Linear(WIDTH, HEADS * WIDTH)
        self.key, self.value = (torch.nn.Linear(WIDTH, key_heads * WIDTH) for _ in range(2))
        self.mask, self.causal, self.grouped = mask, causal, key_heads != HEADS

    def forward(self, x, y):
        def heads(linear, z):
            return linear(z).view(BATCH, z.shape[1], -1, WIDTH).transpose(1, 2)

        out = torch.nn.functional.scaled_dot_product_attention(
            heads(self.query, x), heads(self.key, y), heads(self.value, y), attn_mask=self.mask, is_causal=self.causal,
            enable_gqa=self.grouped)
        return out.square().sum()


def hidden(*shape):
    """A float mask: every third score is minus infinity, and query 1 sees nothing of the second half of the keys."""
    mask = torch.zeros(shape)
    mask.view(-1)[::3] = -math.inf
    mask[..., 1, shape[-1] // 2:] = -math.inf
    mask[..., 1, 1] = 0
    return mask


def blind(*shape):
    """Query 2 sees no key at all; the kernel says zero."""
    mask = hidden(*shape)
    mask[..., 2, :] = -math.inf
    return mask


def kept(model, plan):
    answer = partita.verify(model, plan, dtype="float64")
    assert answer["equal"], answer
    assert answer["measured_peak_bytes"] == answer["predicted_peak_bytes"]


CASES = {
    "plain": {},
    "causal": {"causal": True},
    "grouped heads": {"key_heads": 2},
    "grouped and causal": {"key_heads": 2, "causal": True},
    "some hidden": {"mask": hidden(QUERIES, QUERIES)},
    "by sample": {"mask": hidden(BATCH, 1, QUERIES, QUERIES)},
    "by head": {"mask": hidden(1, HEADS, QUERIES, QUERIES)},
    "by both": {"mask": hidden(BATCH, HEADS, QUERIES, QUERIES)},
    "blind": {"mask": blind(QUERIES, QUERIES)},
    "more keys": {"mask": hidden(QUERIES, 11), "keys": 11},
    "few keys": {"keys": 5},
}


@pytest.mark.parametrize("chunks", [2, 3, 4])
@pytest.mark.parametrize("case", CASES)
def test_chunks_merge_to_the_whole(case, chunks):
    options = dict(CASES[case])
    keys = options.pop("keys", QUERIES)
    model = partita.capture(Attend(**options), (torch.randn(BATCH, QUERIES, WIDTH), torch.randn(BATCH, keys, WIDTH)))
    plan = partita.recipe("dp", model, ranks=1)
    plan.data["key_chunks"] = chunks
    kept(model, plan)


def bert(length):
    module = hf.BertForMaskedLM(hf.BertConfig(num_hidden_layers=1, hidden_size=16, num_attention_heads=4, intermediate_size=24,
                                              vocab_size=40, max_position_embeddings=16, hidden_dropout_prob=0,
                                              attention_probs_dropout_prob=0))
    ids = torch.randint(1, 40, (4, length))
    mask = torch.ones_like(ids)
    mask[1, length // 2:] = 0
    return partita.capture(module, {"input_ids": ids, "labels": ids, "attention_mask": mask})


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_ranks_keep_their_keys_under_a_mask_of_the_batch(ranks):
    model = bert(12 if ranks != 4 else 10)
    kept(model, partita.recipe("cp", model, ranks=ranks, merge="lse"))


def test_image_tokens_meet_keys_in_pieces():
    module = hf.ViTForImageClassification(hf.ViTConfig(num_hidden_layers=1, hidden_size=16, num_attention_heads=4, intermediate_size=24,
                                                       image_size=12, patch_size=4, hidden_dropout_prob=0,
                                                       attention_probs_dropout_prob=0))
    model = partita.capture(module, {"pixel_values": torch.randn(2, 3, 12, 12), "labels": torch.tensor([0, 1])})
    plan = partita.recipe("dp", model, ranks=1)
    rules = {"*/*.part.chunks.*": "out0:0.0", "*/*.part.merge.*": "in0:0.0"}
    plan.data |= {"key_chunks": 2, "mesh": [{"name": "keys", "size": 2}],
                  "split": [{"ops": ops, "axis": "keys", "as": way} for ops, way in rules.items()],
                  # Gradients of queries and keys are so small here that AdamW, which divides by their size, would divide
                  # by rounding, and that differs from run to run.
                  "optimizer": {"name": "sgd", "lr": 0.1}}
    plan.data["stages"][0]["devices"] = [0, 1]
    kept(model, plan)


def test_a_model_that_gives_no_log_sum_exp_is_refused():
    model = partita.capture(torch.nn.Linear(4, 4), (torch.randn(2, 4),), loss=lambda out, batch: out.sum())
    plan = partita.recipe("dp", model, ranks=1)
    plan.data["key_chunks"] = 2
    with pytest.raises(partita.InputError, match="log-sum-exp"):
        partita.verify(model, plan)
