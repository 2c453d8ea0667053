"""partita.from_config and `partita capture`: steps of Hugging Face configs and of a user's function, without weights."""

import json
import os
import subprocess
import sys
import warnings

import pytest
import torch
from transformers import BertConfig, BertForMaskedLM, Qwen3Config, Qwen3ForCausalLM

import partita
from conftest import ROOT

TEXT = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64, "vocab_size": 96}
CONFIGS = {
    "qwen3": {**TEXT, "model_type": "qwen3", "num_key_value_heads": 2, "head_dim": 8},
    "gemma3": {**TEXT, "model_type": "gemma3_text", "num_key_value_heads": 2, "head_dim": 8, "sliding_window": 8},
    "deepseek": {**TEXT, "model_type": "deepseek_v3", "num_key_value_heads": 4, "moe_intermediate_size": 16,
                 "n_routed_experts": 4, "n_group": 2, "topk_group": 1, "num_experts_per_tok": 2, "q_lora_rank": 16,
                 "kv_lora_rank": 8, "qk_rope_head_dim": 4, "qk_nope_head_dim": 8, "v_head_dim": 8,
                 "first_k_dense_replace": 1},
    "bert": {**TEXT, "model_type": "bert", "max_position_embeddings": 32},
    "bert, answers": {**TEXT, "model_type": "bert", "architectures": ["BertForQuestionAnswering"]},
    "t5": {"model_type": "t5", "d_model": 32, "num_layers": 2, "num_heads": 4, "d_kv": 8, "d_ff": 64, "vocab_size": 96,
           "decoder_start_token_id": 0},
    "vit": {"model_type": "vit", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
            "intermediate_size": 64, "image_size": 16, "patch_size": 8},
    "convnext": {"model_type": "convnext", "hidden_sizes": [8, 8, 8, 8], "depths": [1, 1, 1, 1], "image_size": 32},
}
IMAGES = ("vit", "convnext")


def write(folder, config):
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def quietly(path, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return partita.from_config(path, **options)


@pytest.mark.parametrize("name", CONFIGS)
def test_a_step_of_every_kind(tmp_path, name):
    folder = write(tmp_path / "model", CONFIGS[name])
    model = quietly(folder, batch=2, **({} if name in IMAGES else {"seq": 16}))
    batch = [t for t in model.tensors if t.get("role") == "batch"]
    assert batch and all(t["shape"][0] == 2 for t in batch)
    trained = [t for t in model.tensors if t.get("role") == "parameter" and t["trainable"]]
    assert sorted(t["name"] for t in trained) == sorted(model.trained)
    assert {t["dtype"] for t in trained} == {"float32"}


@pytest.mark.parametrize("make, kind, name", [(Qwen3Config, Qwen3ForCausalLM, "qwen3"), (BertConfig, BertForMaskedLM, "bert")])
def test_it_is_the_step_of_the_real_module(tmp_path, make, kind, name):
    model = quietly(write(tmp_path / "model", CONFIGS[name]), batch=2, seq=16)
    module = kind(make(**{k: v for k, v in CONFIGS[name].items() if k != "model_type"})).train()
    ids = torch.zeros(2, 16, dtype=torch.int64)
    expected = partita.capture(module, {"input_ids": ids, "labels": ids.clone()})
    assert model.ops == expected.ops
    assert [{**t, "range": None} for t in model.tensors] == [{**t, "range": None} for t in expected.tensors]


def test_the_dtype_of_the_config_is_taken(tmp_path):
    folder = write(tmp_path / "model", {**CONFIGS["qwen3"], "torch_dtype": "bfloat16"})
    with pytest.warns(UserWarning, match="dtype bfloat16 taken as --dtype bfloat16"):
        model = partita.from_config(folder, batch=2, seq=8)
    assert {t["dtype"] for t in model.tensors if t.get("role") == "parameter"} == {"bfloat16"}
    model = quietly(folder, batch=2, seq=8, dtype="float64")
    assert {t["dtype"] for t in model.tensors if t.get("role") == "parameter"} == {"float64"}


def test_a_misspelt_size_is_said(tmp_path):
    config = {("hidden_sizes" if k == "hidden_size" else k): v for k, v in CONFIGS["bert"].items()}
    with pytest.warns(UserWarning) as told:
        partita.from_config(write(tmp_path / "model", config), batch=1, seq=8)
    said = " ".join(str(one.message) for one in told)
    assert "hidden_size not given, 768 taken" in said and "hidden_sizes: not a key of BertConfig; did you mean 'hidden_size'?" in said


WRONG = [
    ({"model_type": "qwen33"}, {}, r"transformers \S+ has no 'qwen33'.*did you mean 'qwen3"),
    ({"layers": 2}, {}, "there is no model_type"),
    ({**CONFIGS["bert"]}, {"seq": 64}, "holds 32 positions; take --seq 32 or less"),
    ({**CONFIGS["vit"]}, {"seq": 64}, "an image model has no sequence length"),
    ({**CONFIGS["qwen3"]}, {"dtype": "fp8"}, 'unknown dtype "fp8"'),
    ({**CONFIGS["qwen3"], "attn_implementation": "flash_attention_2"}, {}, "flash_attention_2.*write one of eager, sdpa"),
    ({"model_type": "whisper", "architectures": ["WhisperForConditionalGeneration"]}, {}, "give FILE.py:FUNCTION"),
]


@pytest.mark.parametrize("config, options, message", WRONG)
def test_what_cannot_be_captured_is_refused(tmp_path, config, options, message):
    with pytest.raises(partita.InputError, match=message):
        quietly(write(tmp_path / "model", config), batch=2, **options)


def capture(folder, *words):
    call = [sys.executable, "-m", "partita", "capture", *words]
    path = os.pathsep.join([str(ROOT / "python"), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(call, cwd=folder, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path})


def test_the_command_writes_a_step_of_a_config(tmp_path):
    write(tmp_path / "model", CONFIGS["qwen3"])
    done = capture(tmp_path, "model", "--batch", "2", "--seq", "8", "-o", "q.model.json", "--json")
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["output"] == "q.model.json" and answer["opaque_ops"] == 0 and answer["ops"] > 100
    assert answer["params"] == sum(p.numel() for p in Qwen3ForCausalLM(Qwen3Config(**CONFIGS["qwen3"])).parameters())
    assert json.loads((tmp_path / "q.model.json").read_text())["name"] == "qwen3"


FUNCTION = """
import torch
def step(batch=4):
    return torch.nn.Linear(8, 3), {"input": torch.zeros(batch, 8), "y": torch.zeros(batch, dtype=torch.int64)}, loss
def loss(output, batch):
    return torch.nn.functional.cross_entropy(output, batch["y"])
def broken():
    return 1 / 0
def other():
    return 7
"""


def test_the_command_writes_a_step_of_a_function(tmp_path):
    (tmp_path / "mine.py").write_text(FUNCTION)
    done = capture(tmp_path, "mine.py:step", "--batch", "6", "-o", "m.model.json", "--json")
    assert done.returncode == 0, done.stderr
    tensors = json.loads((tmp_path / "m.model.json").read_text())["tensors"]
    assert [t["shape"] for t in tensors if t.get("role") == "batch"] == [[6, 8], [6]]


@pytest.mark.parametrize("words, message", [
    (["mine.py:steps"], "mine.py has no function steps; it has step, loss, broken, other"),
    (["mine.py:broken"], "it raised ZeroDivisionError: division by zero; see that it runs by itself"),
    (["mine.py:other"], "it returned a int; return (module, batch) or (module, batch, loss)"),
    (["mine.py:step", "--seq", "4"], "--seq: mine.py:step does not take seq"),
    (["absent.py:step"], "absent.py: there is no such file"),
    (["nowhere"], "nowhere: there is no such file, and nothing is downloaded"),
])
def test_errors_of_the_command_have_no_traceback(tmp_path, words, message):
    (tmp_path / "mine.py").write_text(FUNCTION)
    done = capture(tmp_path, *words, "-o", "m.model.json")
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("error: ") and message in done.stderr and "Traceback" not in done.stderr
