// The keys that builders do not read, as lists: transformers 4 and 5 write them into config.json, and
// without the lists every published config would be answered with a page of notes.
#include "model/build/config_keys.h"

namespace partita::model::build {
namespace {

using Key = std::string_view;

// The last rows are settings of generation, which transformers 4 kept in the same file.
constexpr Key kGeneric[] = {"_commit_hash",
                            "_name_or_path",
                            "architectures",
                            "auto_map",
                            "chunk_size_feed_forward",
                            "dtype",
                            "finetuning_task",
                            "id2label",
                            "is_decoder",
                            "is_encoder_decoder",
                            "label2id",
                            "model_type",
                            "output_attentions",
                            "output_hidden_states",
                            "prefix",
                            "return_dict",
                            "task_specific_params",
                            "tf_legacy_loss",
                            "tokenizer_class",
                            "torch_dtype",
                            "torchscript",
                            "transformers_version",
                            "use_bfloat16",
                            "use_cache",
                            "use_return_dict",
                            "bos_token_id",
                            "decoder_start_token_id",
                            "eos_token_id",
                            "pad_token_id",
                            "sep_token_id",
                            "unk_token_id",
                            "initializer_range",
                            "cross_attention_hidden_size",
                            "begin_suppress_tokens",
                            "bad_words_ids",
                            "diversity_penalty",
                            "do_sample",
                            "early_stopping",
                            "encoder_no_repeat_ngram_size",
                            "exponential_decay_length_penalty",
                            "forced_bos_token_id",
                            "forced_eos_token_id",
                            "length_penalty",
                            "max_length",
                            "min_length",
                            "no_repeat_ngram_size",
                            "num_beam_groups",
                            "num_beams",
                            "num_return_sequences",
                            "output_scores",
                            "remove_invalid_values",
                            "repetition_penalty",
                            "return_dict_in_generate",
                            "suppress_tokens",
                            "temperature",
                            "top_k",
                            "top_p",
                            "typical_p"};

// Rotary frequencies are values of a buffer: no op depends on them.
constexpr Key kLlama[] = {"max_position_embeddings", "rope_theta", "pretraining_tp",
                          "original_max_position_embeddings"};
constexpr Key kMixtral[] = {"max_position_embeddings", "rope_theta", "router_aux_loss_coef"};
constexpr Key kGpt2[] = {"n_ctx",
                         "summary_type",
                         "summary_use_proj",
                         "summary_activation",
                         "summary_proj_to_labels",
                         "summary_first_dropout",
                         "gradient_checkpointing"};
constexpr Key kBert[] = {
    "classifier_dropout",         "gradient_checkpointing", "directionality",       "pooler_fc_size",
    "pooler_num_attention_heads", "pooler_num_fc_layers",   "pooler_size_per_head", "pooler_type"};
constexpr Key kT5[] = {"classifier_dropout", "initializer_factor", "dense_act_fn",          "is_gated_act",
                       "n_positions",        "output_past",        "gradient_checkpointing"};
constexpr Key kMbart[] = {"classifier_dropout",
                          "init_std",
                          "num_hidden_layers",
                          "classif_dropout",
                          "output_past",
                          "add_bias_logits",
                          "add_final_layer_norm",
                          "normalize_before",
                          "normalize_embedding",
                          "static_position_embeddings",
                          "gradient_checkpointing",
                          "extra_pos_embeddings"};
constexpr Key kVit[] = {"encoder_stride", "pooler_output_size", "pooler_act"};
constexpr Key kSwin[] = {"encoder_stride", "path_norm",    "num_layers", "hidden_size",
                         "stage_names",    "out_features", "out_indices"};

struct IdleRow {
  Key type;
  std::span<const Key> keys;
};
constexpr IdleRow kIdle[] = {{"gpt2", kGpt2},       {"llama", kLlama}, {"mistral", kLlama},
                             {"mixtral", kMixtral}, {"bert", kBert},   {"t5", kT5},
                             {"mbart", kMbart},     {"vit", kVit},     {"swin", kSwin}};

constexpr Key kDropout[] = {"activation_dropout",
                            "attention_dropout",
                            "attention_probs_dropout_prob",
                            "attn_pdrop",
                            "decoder_layerdrop",
                            "drop_path_rate",
                            "dropout",
                            "dropout_rate",
                            "embd_pdrop",
                            "encoder_layerdrop",
                            "hidden_dropout_prob",
                            "resid_pdrop"};

// `attribute_map` of transformers 5.
struct NameRow {
  Key type, other, own;
};
constexpr NameRow kNames[] = {{"gpt2", "hidden_size", "n_embd"},
                              {"gpt2", "max_position_embeddings", "n_positions"},
                              {"gpt2", "num_attention_heads", "n_head"},
                              {"gpt2", "num_hidden_layers", "n_layer"},
                              {"mixtral", "num_experts", "num_local_experts"},
                              {"t5", "hidden_size", "d_model"},
                              {"t5", "num_attention_heads", "num_heads"},
                              {"t5", "num_hidden_layers", "num_layers"},
                              {"t5", "head_dim", "d_kv"},
                              {"mbart", "hidden_size", "d_model"},
                              {"mbart", "num_attention_heads", "encoder_attention_heads"},
                              {"swin", "num_attention_heads", "num_heads"}};

}  // namespace

std::span<const Key> generic_keys() { return kGeneric; }

std::span<const Key> idle_keys(Key model_type) {
  for (const IdleRow& row : kIdle)
    if (row.type == model_type) return row.keys;
  return {};
}

std::span<const Key> dropout_keys() { return kDropout; }

Key own_name(Key model_type, Key key) {
  for (const NameRow& row : kNames)
    if (row.type == model_type && row.other == key) return row.own;
  return {};
}

}  // namespace partita::model::build
