"""bench/plan_models.py: what plan_campaign draws from beside the models that Partita builds."""

import random
import sys
from pathlib import Path

import pytest
import torch

sys.path.append(str(Path(__file__).resolve().parents[2] / "bench"))
import plan_models  # noqa: E402

# What each must have, in the name of an op or in its target.
HAS = {"qwen2_moe": "shared_expert_gate/", "deepseek_v3": "shared_experts.", "gpt_oss": "mlp.experts/",
       "u_net": "upsample_bilinear2d", "u_net_batch_norm": "_native_batch_norm_legit_functional",
       "u_net_diffusion": "upsample_nearest2d", "lstm": "cell/sigmoid", "inferred": "_cdist_forward"}


@pytest.mark.parametrize("name", HAS)
def test_captures_what_it_is_there_for(name):
    torch.manual_seed(2)
    model = getattr(plan_models, name)(random.Random(2))
    assert any(HAS[name] in f"{op['name']} {op['target']}" for op in model.ops)


def test_every_maker_is_drawn_from():
    assert {make.__name__ for make in plan_models.MAKERS} >= HAS.keys()
