"""Models whose plans once went wrong, each with the plan that showed it: lowered, certified, equal to one device."""

import json
import subprocess
from pathlib import Path

import pytest
import torch

import partita
from partita.native import command
from zoo import ZOO
from zoo.double import in_double, make_double

# Why it went wrong: the model, and recipes of its plans.
FOUND = {
    "a gradient op on a later stage than the sum it reads": (
        "gpt_oss", ["pipeline --ranks 4 --microbatches 1", "pipeline --ranks 2 --schedule zb-v --microbatches 2"]),
    "a sum of what one micro-batch has and what all have": ("qwen2_moe", ["pipeline --ranks 2 --microbatches 2"]),
    "a block that keeps an op which lowering takes apart": ("deepseek_v3", ["dp --ranks 2 --recompute --keep products",
                                                                            "tp --ranks 2 --recompute --keep products"]),
    "a loss in pieces of tokens whose softmax is over all": ("bert, question answering", ["dp --ranks 1 --loss-pieces 2",
                                                                                          "sp --ranks 2 --loss-pieces 2"]),
    "an op of a micro-batch that reads a mask of the whole batch": ("esm", ["dp --ranks 1 --microbatches 2"]),
    "a constant that ops want in other shards is made again": ("qwen3_next", ["sp --ranks 2", "cp --ranks 2"]),
    "a gradient that another site fetches after it was summed in place": (
        "adversarial pair", ["pipeline --ranks 4 --dp 2 --zero 3 --schedule wave --waves 2 --microbatches 2"]),
    "a skip connection across stages": ("u-net", ["pipeline --ranks 3 --microbatches 2", "pipeline --ranks 2 --schedule wave"]),
}

# Plans that no recipe makes, as plan_campaign drew them: the config of their model, its batch and sequence length.
PLANS = {
    "loop_and_ranks_cut_one_leaf": ({"model_type": "llama", "num_hidden_layers": 1, "hidden_size": 30, "num_attention_heads": 5,
                                     "num_key_value_heads": 1, "intermediate_size": 9, "vocab_size": 38}, 7, 7),
    "kept_products_of_a_loop": ({"model_type": "t5", "num_layers": 1, "d_model": 6, "d_kv": 2, "num_heads": 3, "d_ff": 16,
                                 "vocab_size": 28}, 5, 5),
}
DATA = Path(__file__).resolve().parents[1] / "data" / "found"


def ask(*words):
    done = subprocess.run([command(), *map(str, words), "--json"], capture_output=True, text=True)
    assert done.returncode == 0, f"{words}: {done.stderr}"
    return json.loads(done.stdout)


@pytest.mark.parametrize("why", FOUND)
def test_equal_to_one_device(why, tmp_path):
    name, recipes = FOUND[why]
    case, step, plan = ZOO[name], tmp_path / "step.model.json", tmp_path / "plan.json"
    with in_double():
        module, batch = make_double(case)
        partita.capture(module, batch, case.loss, bake=case.bake).save(step)
    for recipe in recipes:
        kind, *words = recipe.split()
        ask("recipe", kind, step, *words, "--optimizer", "sgd", "-o", plan)
        ran = ask("verify", step, plan)
        assert ran["equal"] and ran["max_grad_error"] < 1e-9, (recipe, ran)
        measured, predicted = ran["measured_peak_bytes"], ran["predicted_peak_bytes"]
        bounded = name in ("u-net", "adversarial pair")  # of transposed convolutions only a bound is known
        assert all(m <= p for m, p in zip(measured, predicted)) if bounded else measured == predicted, recipe


@pytest.mark.parametrize("name", PLANS)
def test_plans_that_were_drawn(name, tmp_path):
    config, batch, length = PLANS[name]
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config))
    ran = ask("verify", file, DATA / f"{name}.plan.json", "--dtype", "float64", "--batch", batch, "--seq", length)
    assert ran["equal"] and ran["measured_peak_bytes"] == ran["predicted_peak_bytes"], ran


class Nothing(torch.nn.Module):
    """Views of tensors that have no elements."""

    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4, dtype=torch.float64)

    def forward(self, x):
        h = self.linear(x)
        return h.square().mean() + h[:, :0].contiguous().view(0, 3).sum()


@pytest.mark.parametrize("recipe", ["dp", "zero3"])
def test_views_of_nothing(recipe):
    model = partita.capture(Nothing(), (torch.ones(6, 4, dtype=torch.float64),))
    assert partita.verify(model, partita.recipe(recipe, model, ranks=2))["equal"]
