"""Layers of attention between layers of a recurrence: state space models, gated delta nets, gated convolutions."""

from .case import hugging_face
from .mixtures import STATIC
from .state_space import short

DELTA = {"linear_num_value_heads": 4, "linear_num_key_heads": 2, "linear_key_head_dim": 8, "linear_value_head_dim": 8,
         "linear_conv_kernel_dim": 2, "layer_types": ["linear_attention", "full_attention"]}
MAMBA = {"mamba_d_state": 4, "mamba_d_conv": 2, "mamba_expand": 2}

HYBRIDS = [
    hugging_face("qwen3_next", "Qwen3NextForCausalLM", short, **DELTA, **STATIC),
    hugging_face("qwen3_5_text", "Qwen3_5ForCausalLM", short, config="Qwen3_5TextConfig", **DELTA),
    hugging_face("jamba", "JambaForCausalLM", short, **MAMBA, mamba_dt_rank=2, use_mamba_kernels=False, attn_layer_period=2,
                 attn_layer_offset=1, expert_layer_period=2, expert_layer_offset=1, **STATIC),
    hugging_face("bamba", "BambaForCausalLM", short, **MAMBA, mamba_n_heads=8, mamba_d_head=8, mamba_n_groups=2,
                 mamba_chunk_size=4, attn_layer_indices=[1]),
    hugging_face("zamba", "ZambaForCausalLM", short, **MAMBA, mamba_dt_rank=2, use_mamba_kernels=False, n_mamba_heads=2,
                 num_hidden_layers=3,
                 layers_block_type=["mamba", "hybrid", "hybrid"], attention_head_dim=16, attention_hidden_size=64),
    hugging_face("zamba2", "Zamba2ForCausalLM", short, **MAMBA, n_mamba_heads=8, mamba_ngroups=2, chunk_size=4,
                 layers_block_type=["mamba", "hybrid"], use_mem_rope=True, hybrid_layer_ids=[1], num_mem_blocks=1),
    hugging_face("falcon_h1", "FalconH1ForCausalLM", short, **MAMBA, mamba_d_ssm=64, mamba_n_heads=8, mamba_d_head=8,
                 mamba_n_groups=2, mamba_chunk_size=4),
    hugging_face("granitemoehybrid", "GraniteMoeHybridForCausalLM", short, **MAMBA, mamba_n_heads=8, mamba_d_head=8,
                 mamba_n_groups=2, mamba_chunk_size=4, layer_types=["mamba", "attention"], shared_intermediate_size=24,
                 **STATIC),
    hugging_face("lfm2", "Lfm2ForCausalLM", short, layer_types=["conv", "full_attention"]),
]
