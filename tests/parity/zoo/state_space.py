"""Recurrences written as scans."""

from .case import causal, hugging_face


def short():
    return causal(sequence=8)


STATE_SPACE = [
    hugging_face("mamba", "MambaForCausalLM", short, state_size=4, time_step_rank=2),
    hugging_face("mamba2", "Mamba2ForCausalLM", short, num_heads=8, head_dim=8, state_size=4, n_groups=2, chunk_size=4),
    hugging_face("falcon_mamba", "FalconMambaForCausalLM", short, state_size=4, time_step_rank=2),
    hugging_face("rwkv", "RwkvForCausalLM", short, attention_hidden_size=32, context_length=32),
    hugging_face("recurrent_gemma", "RecurrentGemmaForCausalLM", short, num_hidden_layers=3, lru_width=32,
                 attention_window_size=8),
]
