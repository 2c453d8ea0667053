"""Plans that random draws found and that once went wrong, each made small."""

import json
import subprocess

from partita.native import command

MBART = {"model_type": "mbart", "encoder_layers": 1, "decoder_layers": 1, "d_model": 16, "encoder_attention_heads": 4,
         "decoder_attention_heads": 4, "encoder_ffn_dim": 21, "decoder_ffn_dim": 21, "vocab_size": 34,
         "max_position_embeddings": 16}
LLAMA = {"model_type": "llama", "num_hidden_layers": 1, "hidden_size": 20, "num_attention_heads": 5,
         "num_key_value_heads": 1, "intermediate_size": 19, "vocab_size": 30}


def ask(*words):
    done = subprocess.run([command(), *map(str, words), "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def verify(folder, config, batch, seq, recipe, changes):
    """Runs a recipe's plan with these keys set anew; it must equal one device, with the predicted bytes."""
    written, step, plan = folder / "config.json", folder / "step.model.json", folder / "plan.json"
    written.write_text(json.dumps(config))
    ask("models", written, "--batch", batch, "--seq", seq, "-o", step)
    ask("recipe", *recipe, step, "-o", plan)
    plan.write_text(json.dumps(json.loads(plan.read_text()) | changes))
    ran = ask("verify", step, plan, "--dtype", "float64")
    assert ran["equal"] and ran["measured_peak_bytes"] == ran["predicted_peak_bytes"]


def pieces(module, count, atoms):
    return {"name": "piece", "size": count, "ops": [f"{module}/*", f"{module}.*"], "atoms": atoms}


def test_a_sum_that_dies_with_its_last_addend_is_gone(tmp_path):
    """What an instruction changes in place and drops stayed until the end of its body."""
    layer = "model.decoder.layers.0"
    verify(tmp_path, MBART, 5, 3, ["dp", "--ranks", 1], {
        "loops": [pieces(f"{layer}.self_attn", 2, ["model.shared.weight:1.0"])],
        "recompute": [{"ops": [f"{layer}/*", f"{layer}.*"]}]})


def test_a_copy_of_a_piece_is_as_long_as_the_piece(tmp_path):
    """A piece that is summed in place while others need its addends is copied first: as the piece it is."""
    verify(tmp_path, LLAMA, 3, 4, ["tp", "--ranks", 2], {
        "loops": [pieces("model.layers.0.self_attn", 2, ["input_ids:0.0"])]})


def test_zeros_are_gathered_as_zeros(tmp_path):
    """Of a value that all pieces need whole the first piece holds all, the others zeros, on every rank."""
    verify(tmp_path, LLAMA, 2, 7, ["cp", "--merge", "lse", "--ranks", 2], {
        "loops": [pieces("model.layers.0", 4, ["model.layers.0.self_attn.q_proj.weight:0.0"])]})


def test_a_stage_keeps_for_others_what_it_would_make_again_for_itself(tmp_path):
    """Backward of the next stage reads what a loop of a recomputed module makes: only pieces of it were there."""
    attention = "model.layers.0.self_attn"
    first = ["model.embed_tokens/*", "model.layers.0.input_layernorm/*", f"{attention}.k_proj/view", f"{attention}.k_proj/mm"]
    verify(tmp_path, LLAMA, 6, 4, ["pipeline", "--ranks", 2, "--microbatches", 3], {
        "stages": [{"ops": first, "devices": [0]}, {"ops": ["*"], "devices": [1]}],
        "loops": [{"name": "mb", "size": 3, "atom": "input_ids:0.0"},
                  {"name": "piece", "size": 3, "ops": [f"{attention}.k_proj/*"], "atoms": ["input_ids:1.0"]}],
        "recompute": [{"ops": ["model.layers.0/*", "model.layers.0.*"]}]})
