"""Verifies small models of other families under data, tensor and pipeline parallelism, and writes docs/evidence/families.md.

    PYTHONPATH=python python tests/parity/families_table.py COMMAND [--write]

The models come from transformers, captured here; the Evoformer stack is built by Partita. Fails if one plan differs.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import torch
import transformers as hf

import partita

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "evidence" / "families.md"
VOCABULARY, CLASSES, BATCH = 64, 6, 4
ENDS = dict(bos_token_id=0, eos_token_id=0, pad_token_id=0)
LAYERS = dict(num_hidden_layers=2, hidden_size=32, num_attention_heads=4)
DECODER = dict(LAYERS, vocab_size=VOCABULARY, intermediate_size=48, num_key_value_heads=2, max_position_embeddings=32)
BOTH = dict(vocab_size=VOCABULARY, encoder_layers=2, decoder_layers=2, d_model=32, encoder_attention_heads=4,
            decoder_attention_heads=4, encoder_ffn_dim=64, decoder_ffn_dim=64, dropout=0, attention_dropout=0,
            activation_dropout=0)
STILL = dict(hidden_dropout_prob=0, attention_probs_dropout_prob=0)


def tokens(length=12):
    return torch.randint(1, VOCABULARY, (BATCH, length))


def text(model):
    ids = tokens()
    return model, {"input_ids": ids, "labels": ids}


def translation(model):
    return model, {"input_ids": tokens(), "labels": tokens(8)}


def image(model, size):
    return model, {"pixel_values": torch.randn(BATCH, 3, size, size), "labels": torch.randint(0, CLASSES, (BATCH,))}


def whisper():
    config = hf.WhisperConfig(**BOTH, **ENDS, num_mel_bins=8, max_source_positions=16, max_target_positions=16,
                              decoder_start_token_id=0, suppress_tokens=None, begin_suppress_tokens=None)
    return (hf.WhisperForConditionalGeneration(config),
            {"input_features": torch.randn(BATCH, 8, 32), "labels": tokens(8)})


class SkipNet(torch.nn.Module):
    """Down, up and beside it: the last convolution reads a value of the first stage. The loss is a plain mean."""

    def __init__(self):
        super().__init__()
        self.first, self.down = torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.Conv2d(8, 16, 3, stride=2, padding=1)
        self.norm, self.up = torch.nn.GroupNorm(4, 16), torch.nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.last = torch.nn.Conv2d(16, 3, 1)

    def forward(self, image, wanted):
        wide = torch.relu(self.first(image))
        narrow = torch.relu(self.norm(self.down(wide)))
        return self.last(torch.cat([wide, self.up(narrow)], 1))


def skip_net():
    image = torch.randn(BATCH, 3, 8, 8)
    return SkipNet(), {"image": image, "wanted": image.flip(0)}, lambda out, batch: (out - batch["wanted"]).square().mean()


MODELS = {
    "BERT": lambda: text(hf.BertForMaskedLM(hf.BertConfig(
        **LAYERS, **STILL, intermediate_size=64, vocab_size=VOCABULARY, max_position_embeddings=16))),
    "Phi-3 (qkv of unequal parts)": lambda: text(hf.Phi3ForCausalLM(hf.Phi3Config(**DECODER, **ENDS, resid_pdrop=0))),
    "Mixtral (4 experts)": lambda: text(hf.MixtralForCausalLM(hf.MixtralConfig(
        **DECODER, num_local_experts=4, sliding_window=None, experts_implementation="batched_mm"))),
    "ViT": lambda: image(hf.ViTForImageClassification(hf.ViTConfig(
        **LAYERS, **STILL, intermediate_size=64, image_size=8, patch_size=4, num_labels=CLASSES)), 8),
    "Swin": lambda: image(hf.SwinForImageClassification(hf.SwinConfig(
        **STILL, image_size=16, patch_size=2, embed_dim=8, depths=[2, 2], num_heads=[2, 4], window_size=4,
        drop_path_rate=0, num_labels=CLASSES)), 16),
    "ResNet (BatchNorm)": lambda: image(hf.ResNetForImageClassification(hf.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[2, 2], layer_type="basic", num_labels=CLASSES)), 16),
    "T5": lambda: translation(hf.T5ForConditionalGeneration(hf.T5Config(
        num_layers=2, num_decoder_layers=2, d_model=32, num_heads=4, d_kv=8, d_ff=64, vocab_size=VOCABULARY,
        dropout_rate=0, decoder_start_token_id=0))),
    "mBART": lambda: translation(hf.MBartForConditionalGeneration(hf.MBartConfig(**BOTH, max_position_embeddings=32))),
    "Whisper": whisper,
    "DeBERTa (positions through the weights)": lambda: text(hf.DebertaV2ForMaskedLM(hf.DebertaV2Config(
        **LAYERS, **STILL, intermediate_size=48, vocab_size=VOCABULARY, max_position_embeddings=32,
        relative_attention=True, pos_att_type=["p2c", "c2p"]))),
    "Mamba": lambda: text(hf.MambaForCausalLM(hf.MambaConfig(
        hidden_size=16, num_hidden_layers=2, vocab_size=VOCABULARY, state_size=4, expand=2, time_step_rank=4))),
    "convolutions with a skip, mean loss": skip_net,
    "Evoformer": "evoformer-tiny",
}
PLANS = {
    "dp2": "dp --ranks 2",
    "tp2": "tp --ranks 2",
    "pp2, 2 micro-batches": "pipeline --ranks 2 --microbatches 2",
    "pp2, 1 micro-batch": "pipeline --ranks 2 --microbatches 1",
}
# BatchNorm's statistics are those of the whole batch, so a part of it cannot run before the rest is there.
REFUSED = {("ResNet (BatchNorm)", "pp2, 2 micro-batches")}


def partita_says(command, *words):
    done = subprocess.run([command, *words, "--json"], capture_output=True, text=True)
    return json.loads(done.stdout) if done.stdout else done.stderr.strip()


def file_of(name, folder):
    """What the command takes for a model: a preset's name, or a file captured into `folder`."""
    if isinstance(MODELS[name], str):
        return MODELS[name]
    torch.manual_seed(0)
    module, batch, *loss = MODELS[name]()
    path = pathlib.Path(folder) / "step.model.json"
    partita.capture(module.train(), batch, *loss).save(path)
    return str(path)


def verify(command, file, recipe, folder):
    """The answer of `partita verify`, or the sentence with which recipe or verify refused."""
    kind, *flags = recipe.split()
    plan = str(pathlib.Path(folder) / "plan.json")
    made = partita_says(command, "recipe", kind, file, *flags, "-o", plan)
    if isinstance(made, str):
        return made
    return partita_says(command, "verify", file, plan, "--dtype", "float64")


def row(name, plan, answer):
    if isinstance(answer, str):
        return [plan, name, "refused: " + answer.removeprefix("error: plan: "), "", "", "", ""]
    errors = [f"{answer[key]:.1e}" for key in ("loss_error", "max_grad_error", "max_param_error", "max_buffer_error")]
    return [plan, name, "yes" if answer["equal"] else "NO", *errors]


def table(command, names=MODELS):
    """(rows, how many are not as they should be)"""
    rows, wrong = [], 0
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            file = file_of(name, folder)
            for plan, recipe in PLANS.items():
                answer = verify(command, file, recipe, folder)
                rows.append(row(name, plan, answer))
                refused = isinstance(answer, str)
                wrong += refused != ((name, plan) in REFUSED) or not refused and not answer["equal"]
                print(*rows[-1], sep="  ")
    return rows, wrong


def page(rows):
    head = ["plan", "model", "equal", "loss", "gradients", "parameters", "buffers"]
    lines = "\n".join("| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head), *rows])
    return f"""# Families of models against one device

Two steps in float64, dropout 0, parameters without zeros; errors are relative, the tolerance is 1e-9.
Made by `PYTHONPATH=python python tests/parity/families_table.py build/bin/partita --write`.

{lines}
"""


if __name__ == "__main__":
    rows, wrong = table(sys.argv[1])
    if "--write" in sys.argv:
        PAGE.write_text(page(rows))
    sys.exit(f"{wrong} of {len(rows)} not as they should be" if wrong else 0)
