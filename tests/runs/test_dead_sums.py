"""What is changed in place and dropped by the same instruction dies there: counted bytes are the predicted ones."""

import json
import subprocess

from partita.native import command

CONFIG = {"model_type": "mbart", "encoder_layers": 1, "decoder_layers": 1, "d_model": 16, "encoder_attention_heads": 4,
          "decoder_attention_heads": 4, "encoder_ffn_dim": 21, "decoder_ffn_dim": 21, "vocab_size": 34,
          "max_position_embeddings": 16}


def test_a_sum_that_dies_with_its_last_addend_is_gone(tmp_path):
    """Found by random plans: what an instruction changes in place and drops stayed until the end of its body."""
    def ask(*words):
        done = subprocess.run([command(), *map(str, words), "--json"], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    config, step, plan = tmp_path / "config.json", tmp_path / "step.model.json", tmp_path / "plan.json"
    config.write_text(json.dumps(CONFIG))
    ask("models", config, "--batch", 5, "--seq", 3, "-o", step)
    ask("recipe", "dp", step, "--ranks", 1, "-o", plan)
    layer = "model.decoder.layers.0"
    plan.write_text(json.dumps(json.loads(plan.read_text()) | {
        "loops": [{"name": "piece", "size": 2, "ops": [f"{layer}.self_attn/*", f"{layer}.self_attn.*"],
                   "atoms": ["model.shared.weight:1.0"]}],
        "recompute": [{"ops": [f"{layer}/*", f"{layer}.*"]}]}))
    ran = ask("verify", step, plan, "--dtype", "float64")
    assert ran["equal"] and ran["measured_peak_bytes"] == ran["predicted_peak_bytes"]
