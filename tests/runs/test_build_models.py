"""A step built in C++ from a config.json is the captured step of the Hugging Face module of that config: the same
parameters and flops and, on the same weights and batch, the same loss and gradients."""

import json
import subprocess

import pytest
import torch
import transformers as hf

import partita
from partita.native import command, library
from replay import replay

VOCABULARY, BATCH, SEQUENCE = 96, 3, 16
NO_END = {"bos_token_id": 0, "eos_token_id": 0}
LLAMA = {"num_hidden_layers": 2, "hidden_size": 48, "num_attention_heads": 4, "num_key_value_heads": 2,
         "intermediate_size": 80, "vocab_size": VOCABULARY, **NO_END}
IMAGE = {"num_labels": 10, "hidden_dropout_prob": 0, "attention_probs_dropout_prob": 0}


def tokens():
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(2, VOCABULARY, (BATCH, SEQUENCE), generator=generator)
    labels = ids.clone()
    labels[0, :7] = -100
    return {"input_ids": ids, "labels": labels}


def images():
    generator = torch.Generator().manual_seed(1)
    return {"pixel_values": torch.randn(BATCH, 3, 32, 32, generator=generator),
            "labels": torch.tensor([0, 9, 4])}


def gpt2(**more):
    config = hf.GPT2Config(n_layer=2, n_embd=48, n_head=4, vocab_size=VOCABULARY, n_positions=24, resid_pdrop=0,
                           embd_pdrop=0, attn_pdrop=0, **NO_END, **more)
    return hf.GPT2LMHeadModel(config), tokens()


def bert(**more):
    config = hf.BertConfig(num_hidden_layers=2, hidden_size=48, num_attention_heads=4, intermediate_size=80,
                           vocab_size=VOCABULARY, max_position_embeddings=24, hidden_dropout_prob=0,
                           attention_probs_dropout_prob=0, **more)
    return hf.BertForMaskedLM(config), tokens()


def t5(**more):
    config = hf.T5Config(num_layers=2, num_decoder_layers=3, d_model=48, num_heads=4, d_kv=8, d_ff=80,
                         vocab_size=VOCABULARY, dropout_rate=0, decoder_start_token_id=0, **more)
    return hf.T5ForConditionalGeneration(config), tokens()


def mbart(**more):
    config = hf.MBartConfig(encoder_layers=2, decoder_layers=3, d_model=48, encoder_attention_heads=4,
                            decoder_attention_heads=6, encoder_ffn_dim=80, decoder_ffn_dim=64, vocab_size=VOCABULARY,
                            max_position_embeddings=24, dropout=0, attention_dropout=0, activation_dropout=0, **more)
    return hf.MBartForConditionalGeneration(config), tokens()


def vit(**more):
    config = hf.ViTConfig(num_hidden_layers=2, hidden_size=48, num_attention_heads=4, intermediate_size=80,
                          image_size=32, patch_size=8, **IMAGE, **more)
    config.problem_type = "single_label_classification"
    return hf.ViTForImageClassification(config), images()


def swin(**more):
    config = hf.SwinConfig(image_size=32, patch_size=2, embed_dim=12, depths=[2, 3], num_heads=[2, 3], window_size=4,
                           drop_path_rate=0.0, **IMAGE, **more)
    config.problem_type = "single_label_classification"
    return hf.SwinForImageClassification(config), images()


def llama(**more):
    return hf.LlamaForCausalLM(hf.LlamaConfig(**{**LLAMA, **more})), tokens()


def mixtral():
    # The only form of the experts whose graph does not depend on data.
    config = hf.MixtralConfig(**LLAMA, sliding_window=None, num_local_experts=4, experts_implementation="batched_mm")
    return hf.MixtralForCausalLM(config), tokens()


CASES = {
    "gpt2": gpt2,
    "gpt2 untied, exact gelu": lambda: gpt2(tie_word_embeddings=False, activation_function="gelu", n_inner=100),
    "gpt2 fused tanh gelu": lambda: gpt2(activation_function="gelu_pytorch_tanh"),
    "llama": llama,
    "llama tied, one key head": lambda: llama(tie_word_embeddings=True, num_key_value_heads=1),
    "llama with biases, wide heads": lambda: llama(attention_bias=True, mlp_bias=True, head_dim=20),
    "llama with padding": lambda: llama(pad_token_id=5),
    "mistral": lambda: (hf.MistralForCausalLM(hf.MistralConfig(**LLAMA, sliding_window=None)), tokens()),
    "mistral, short in its window": lambda: (hf.MistralForCausalLM(hf.MistralConfig(**LLAMA, sliding_window=32)), tokens()),
    "mixtral": mixtral,
    "bert": bert,
    "t5": t5,
    "t5 gated, not scaled": lambda: t5(feed_forward_proj="gated-gelu", tie_word_embeddings=False),
    "mbart": mbart,
    "mbart scaled": lambda: mbart(scale_embedding=True),
    "vit": vit,
    "vit without bias": lambda: vit(qkv_bias=False),
    "swin": swin,
}


def run(*arguments):
    done = subprocess.run([command(), *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def in_float64(*arguments, output):
    # Hugging Face casts some values to float32 whatever the module's dtype is; a retyped step computes all in float64.
    run("models", *arguments, "--dtype", "float64", "-o", output, "--json")
    return output


def build(module, batch, folder):
    """The file of the step that the command makes of the module's own config.json."""
    module.config.save_pretrained(folder)
    sequence = ["--seq", SEQUENCE] if "input_ids" in batch else []
    return in_float64(folder / "config.json", "--batch", BATCH, *sequence, output=folder / "built.model.json")


def double(tensors):
    return {name: t.detach().double() if t.is_floating_point() else t for name, t in tensors.items()}


def close(a, b):
    return torch.allclose(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", CASES)
def test_built_equals_captured(name, tmp_path):
    torch.manual_seed(0)
    module, batch = CASES[name]()
    with torch.no_grad():  # no bias stays zero, no norm stays one
        for parameter in module.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.02)
    traced = partita.capture(module, batch)
    traced.save(tmp_path / "traced.model.json")
    captured = in_float64(tmp_path / "traced.model.json", output=tmp_path / "captured.model.json")
    built = build(module, batch, tmp_path)

    weights = double({**dict(module.named_parameters()), **dict(module.named_buffers()), **traced.constants})
    batch = double(batch)
    wanted_loss, wanted, _ = library().run_step(captured.read_text(), weights, batch)
    loss, gradients, _ = library().run_step(built.read_text(), weights, batch)
    assert abs(loss - wanted_loss) < 1e-10
    assert gradients.keys() == wanted.keys()
    for parameter, gradient in gradients.items():
        assert close(gradient, wanted[parameter]), parameter
    replay(built.read_text(), {**weights, **batch})  # sizes, strides and dtypes are what PyTorch makes

    ours = run("profile", built, "--device", "cpu", "--json")
    theirs = run("profile", captured, "--device", "cpu", "--json")
    assert ours["params"] == theirs["params"] == sum(p.numel() for p in module.parameters())
    if name == "mixtral":  # the built one has room for all tokens at every expert
        return
    assert ours["flops"]["forward"] == pytest.approx(theirs["flops"]["forward"], rel=1e-3)
    assert ours["flops"]["backward"] == pytest.approx(theirs["flops"]["backward"], rel=1e-3)


def test_every_architecture_is_tried():
    tried = {case.split(",")[0].split()[0] for case in CASES}
    known = {model["architecture"] for model in run("models", "--json")["models"]}
    assert known == tried | {"evoformer"}  # tried in test_build_evoformer.py
