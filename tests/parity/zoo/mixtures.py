"""Mixtures of experts, in the formulation whose shapes do not depend on the routing."""

from .case import causal, hugging_face

STATIC = {"experts_implementation": "batched_mm"}

MIXTURES = [
    hugging_face("mixtral", "MixtralForCausalLM", causal, **STATIC),
    hugging_face("qwen2_moe", "Qwen2MoeForCausalLM", causal, **STATIC),
    hugging_face("qwen3_moe", "Qwen3MoeForCausalLM", causal, **STATIC),
    hugging_face("olmoe", "OlmoeForCausalLM", causal, **STATIC),
    hugging_face("granitemoe", "GraniteMoeForCausalLM", causal, **STATIC),
    hugging_face("phimoe", "PhimoeForCausalLM", causal, **STATIC),
    hugging_face("deepseek_v2", "DeepseekV2ForCausalLM", causal, n_routed_experts=4, n_group=1, topk_group=1,
                 kv_lora_rank=8, q_lora_rank=8, qk_rope_head_dim=4, qk_nope_head_dim=4, v_head_dim=8,
                 num_key_value_heads=4, first_k_dense_replace=1, n_shared_experts=1, **STATIC),
    hugging_face("deepseek_v3", "DeepseekV3ForCausalLM", causal, n_routed_experts=4, n_group=2, topk_group=1, head_dim=4,
                 kv_lora_rank=8, q_lora_rank=8, qk_rope_head_dim=4, qk_nope_head_dim=4, v_head_dim=8,
                 num_key_value_heads=4, first_k_dense_replace=1, n_shared_experts=1, **STATIC),
    hugging_face("gpt_oss", "GptOssForCausalLM", causal, **STATIC),
]
