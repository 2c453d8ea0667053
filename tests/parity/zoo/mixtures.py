"""Mixtures of experts, in the formulation whose shapes do not depend on the routing."""

from .case import causal, causal_rows, hugging_face

STATIC = {"experts_implementation": "batched_mm"}
DEEPSEEK = {"n_routed_experts": 4, "n_group": 2, "topk_group": 1, "head_dim": 4, "kv_lora_rank": 8, "q_lora_rank": 8,
            "qk_rope_head_dim": 4, "qk_nope_head_dim": 4, "v_head_dim": 8, "num_key_value_heads": 4,
            "first_k_dense_replace": 1, "n_shared_experts": 1}

MIXTURES = [
    hugging_face("mixtral", "MixtralForCausalLM", causal, **STATIC),
    hugging_face("qwen2_moe", "Qwen2MoeForCausalLM", causal, **STATIC),
    hugging_face("qwen3_moe", "Qwen3MoeForCausalLM", causal, **STATIC),
    hugging_face("olmoe", "OlmoeForCausalLM", causal, **STATIC),
    hugging_face("granitemoe", "GraniteMoeForCausalLM", causal, **STATIC),
    hugging_face("phimoe", "PhimoeForCausalLM", causal, router_jitter_noise=0.0, **STATIC),
    hugging_face("deepseek_v2", "DeepseekV2ForCausalLM", causal, n_routed_experts=4, n_group=1, topk_group=1,
                 kv_lora_rank=8, q_lora_rank=8, qk_rope_head_dim=4, qk_nope_head_dim=4, v_head_dim=8,
                 num_key_value_heads=4, first_k_dense_replace=1, n_shared_experts=1, **STATIC),
    hugging_face("deepseek_v3", "DeepseekV3ForCausalLM", causal, **DEEPSEEK, **STATIC),
    hugging_face("gpt_oss", "GptOssForCausalLM", causal, **STATIC),
    hugging_face("llama4_text", "Llama4ForCausalLM", causal, config="Llama4TextConfig", intermediate_size_mlp=48,
                 interleave_moe_layer_step=2, num_experts_per_tok=1, attention_chunk_size=8, **STATIC),
    hugging_face("glm4_moe", "Glm4MoeForCausalLM", causal, n_routed_experts=4, n_group=2, topk_group=1, n_shared_experts=1,
                 first_k_dense_replace=1, **STATIC),
    hugging_face("ernie4_5_moe", "Ernie4_5_MoeForCausalLM", causal, moe_num_experts=4, moe_k=2, moe_layer_start_index=1,
                 moe_num_shared_experts=1, **STATIC),
    hugging_face("dots1", "Dots1ForCausalLM", causal, n_routed_experts=4, n_group=2, topk_group=1, n_shared_experts=1,
                 first_k_dense_replace=1, **STATIC),
    hugging_face("flex_olmo", "FlexOlmoForCausalLM", causal, **STATIC),
    hugging_face("lfm2_moe", "Lfm2MoeForCausalLM", causal, num_dense_layers=1, layer_types=["conv", "full_attention"],
                 **STATIC),
    hugging_face("minimax", "MiniMaxForCausalLM", causal, layer_types=["linear_attention", "full_attention"], block_size=8,
                 **STATIC),
    hugging_face("gpt_oss, 4 layers", "GptOssForCausalLM", causal_rows, num_hidden_layers=4, **STATIC),
    hugging_face("deepseek_v3, 4 layers", "DeepseekV3ForCausalLM", causal_rows, num_hidden_layers=4, **DEEPSEEK, **STATIC),
    hugging_face("qwen2_moe, 4 layers", "Qwen2MoeForCausalLM", causal_rows, num_hidden_layers=4, **STATIC),
    hugging_face("qwen3_moe, 4 layers", "Qwen3MoeForCausalLM", causal_rows, num_hidden_layers=4, **STATIC),
]
