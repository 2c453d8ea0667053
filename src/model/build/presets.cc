#include <algorithm>

#include "model/build/build.h"

namespace partita::model {
namespace {

constexpr Preset kPresets[] = {
    // About 100 thousand parameters, for tests.
    {"gpt2-tiny",
     R"({"model_type": "gpt2", "n_layer": 2, "n_embd": 64, "n_head": 4, "vocab_size": 96, "n_positions": 64})",
     {4, 16}},
    {"llama-tiny",
     R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
         "num_key_value_heads": 2, "intermediate_size": 192, "vocab_size": 96})",
     {4, 16}},
    // Radford et al. 2019, Language Models are Unsupervised Multitask Learners, table 2.
    {"gpt2-small", R"({"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12})", {8, 1024}},
    {"gpt2-medium", R"({"model_type": "gpt2", "n_layer": 24, "n_embd": 1024, "n_head": 16})", {8, 1024}},
    {"gpt2-large", R"({"model_type": "gpt2", "n_layer": 36, "n_embd": 1280, "n_head": 20})", {8, 1024}},
    {"gpt2-xl", R"({"model_type": "gpt2", "n_layer": 48, "n_embd": 1600, "n_head": 25})", {8, 1024}},
    // Brown et al. 2020, Language Models are Few-Shot Learners, table 2.1, dense attention in every layer.
    // Heads of the
    // 1.3B and the width of the 13B are those that divide (the table has 24 heads of 128 in 2048, and 5140).
    {"gpt3-125m",
     R"({"model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "n_positions": 2048})",
     {256, 2048}},
    {"gpt3-350m",
     R"({"model_type": "gpt2", "n_layer": 24, "n_embd": 1024, "n_head": 16, "n_positions": 2048})",
     {256, 2048}},
    {"gpt3-760m",
     R"({"model_type": "gpt2", "n_layer": 24, "n_embd": 1536, "n_head": 16, "n_positions": 2048})",
     {256, 2048}},
    {"gpt3-1.3b",
     R"({"model_type": "gpt2", "n_layer": 24, "n_embd": 2048, "n_head": 16, "n_positions": 2048})",
     {512, 2048}},
    {"gpt3-2.7b",
     R"({"model_type": "gpt2", "n_layer": 32, "n_embd": 2560, "n_head": 32, "n_positions": 2048})",
     {512, 2048}},
    {"gpt3-6.7b",
     R"({"model_type": "gpt2", "n_layer": 32, "n_embd": 4096, "n_head": 32, "n_positions": 2048})",
     {1024, 2048}},
    {"gpt3-13b",
     R"({"model_type": "gpt2", "n_layer": 40, "n_embd": 5120, "n_head": 40, "n_positions": 2048})",
     {1024, 2048}},
    {"gpt3-175b",
     R"({"model_type": "gpt2", "n_layer": 96, "n_embd": 12288, "n_head": 96, "n_positions": 2048})",
     {1536, 2048}},
    // Narayanan et al. 2021, Efficient Large-Scale Language Model Training, table 1.
    {"megatron-18b",
     R"({"model_type": "gpt2", "n_layer": 40, "n_embd": 6144, "n_head": 48, "n_positions": 2048, "vocab_size": 51200})",
     {1024, 2048}},
    {"megatron-39b",
     R"({"model_type": "gpt2", "n_layer": 48, "n_embd": 8192, "n_head": 64, "n_positions": 2048, "vocab_size": 51200})",
     {1536, 2048}},
    {"megatron-145b",
     R"({"model_type": "gpt2", "n_layer": 80, "n_embd": 12288, "n_head": 96, "n_positions": 2048, "vocab_size": 51200})",
     {2304, 2048}},
    {"megatron-530b",
     R"({"model_type": "gpt2", "n_layer": 105, "n_embd": 20480, "n_head": 128, "n_positions": 2048,
         "vocab_size": 51200})",
     {2520, 2048}},
    {"megatron-1t",
     R"({"model_type": "gpt2", "n_layer": 128, "n_embd": 25600, "n_head": 160, "n_positions": 2048,
         "vocab_size": 51200})",
     {3072, 2048}},
    // Touvron et al. 2023, Llama 2, and the published configs.
    {"llama-2-7b",
     R"({"model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
         "intermediate_size": 11008, "rms_norm_eps": 1e-5})",
     {8, 4096}},
    {"llama-2-13b",
     R"({"model_type": "llama", "num_hidden_layers": 40, "hidden_size": 5120, "num_attention_heads": 40,
         "intermediate_size": 13824, "rms_norm_eps": 1e-5})",
     {8, 4096}},
    {"llama-2-70b",
     R"({"model_type": "llama", "num_hidden_layers": 80, "hidden_size": 8192, "num_attention_heads": 64,
         "num_key_value_heads": 8, "intermediate_size": 28672, "rms_norm_eps": 1e-5})",
     {8, 4096}},
    // Dubey et al. 2024, The Llama 3 Herd of Models, table 3; the small ones from their published configs.
    {"llama-3.2-1b",
     R"({"model_type": "llama", "num_hidden_layers": 16, "hidden_size": 2048, "num_attention_heads": 32,
         "num_key_value_heads": 8, "intermediate_size": 8192, "vocab_size": 128256, "rms_norm_eps": 1e-5,
         "tie_word_embeddings": true})",
     {8, 8192}},
    {"llama-3.2-3b",
     R"({"model_type": "llama", "num_hidden_layers": 28, "hidden_size": 3072, "num_attention_heads": 24,
         "num_key_value_heads": 8, "intermediate_size": 8192, "vocab_size": 128256, "rms_norm_eps": 1e-5,
         "tie_word_embeddings": true})",
     {8, 8192}},
    {"llama-3-8b",
     R"({"model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
         "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "rms_norm_eps": 1e-5})",
     {8, 8192}},
    {"llama-3-70b",
     R"({"model_type": "llama", "num_hidden_layers": 80, "hidden_size": 8192, "num_attention_heads": 64,
         "num_key_value_heads": 8, "intermediate_size": 28672, "vocab_size": 128256, "rms_norm_eps": 1e-5})",
     {8, 8192}},
    {"llama-3.1-405b",
     R"({"model_type": "llama", "num_hidden_layers": 126, "hidden_size": 16384, "num_attention_heads": 128,
         "num_key_value_heads": 8, "intermediate_size": 53248, "vocab_size": 128256, "rms_norm_eps": 1e-5})",
     {2048, 8192}},
    // Jiang et al. 2023, Mistral 7B, table 1.
    {"mistral-7b",
     R"({"model_type": "mistral", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
         "num_key_value_heads": 8, "intermediate_size": 14336, "rms_norm_eps": 1e-5, "sliding_window": 4096})",
     {8, 4096}},
    // Jiang et al. 2024, Mixtral of Experts, table 1; experts take a quarter more tokens than an even share.
    {"mixtral-tiny",
     R"({"model_type": "mixtral", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
         "num_key_value_heads": 2, "intermediate_size": 64, "vocab_size": 96, "num_local_experts": 4})",
     {4, 16}},
    {"mixtral-8x7b", R"({"model_type": "mixtral", "capacity_factor": 1.25})", {8, 4096}},
    {"mixtral-8x22b",
     R"({"model_type": "mixtral", "num_hidden_layers": 56, "hidden_size": 6144, "num_attention_heads": 48,
         "intermediate_size": 16384, "vocab_size": 32768, "capacity_factor": 1.25})",
     {8, 4096}},
    // Devlin et al. 2019, BERT, section 3.
    {"bert-base", R"({"model_type": "bert"})", {32, 512}},
    {"bert-large",
     R"({"model_type": "bert", "num_hidden_layers": 24, "hidden_size": 1024, "num_attention_heads": 16,
         "intermediate_size": 4096})",
     {32, 512}},
    // Raffel et al. 2020, Exploring the Limits of Transfer Learning, section 3.7; the first release, tied and
    // with ReLU.
    {"t5-small", R"({"model_type": "t5"})", {32, 512}},
    {"t5-base",
     R"({"model_type": "t5", "num_layers": 12, "d_model": 768, "num_heads": 12, "d_ff": 3072})",
     {32, 512}},
    {"t5-large",
     R"({"model_type": "t5", "num_layers": 24, "d_model": 1024, "num_heads": 16, "d_ff": 4096})",
     {32, 512}},
    {"t5-3b",
     R"({"model_type": "t5", "num_layers": 24, "d_model": 1024, "num_heads": 32, "d_kv": 128, "d_ff": 16384})",
     {32, 512}},
    {"t5-11b",
     R"({"model_type": "t5", "num_layers": 24, "d_model": 1024, "num_heads": 128, "d_kv": 128, "d_ff": 65536})",
     {32, 512}},
    // Liu et al. 2020, Multilingual Denoising Pre-training, and the published config.
    {"mbart-large", R"({"model_type": "mbart", "vocab_size": 250027, "scale_embedding": true})", {32, 512}},
    // Dosovitskiy et al. 2021, An Image is Worth 16x16 Words, table 1, with the 1000 classes of ImageNet.
    {"vit-base", R"({"model_type": "vit", "num_labels": 1000})", {64, 0}},
    {"vit-large",
     R"({"model_type": "vit", "num_hidden_layers": 24, "hidden_size": 1024, "num_attention_heads": 16,
         "intermediate_size": 4096, "num_labels": 1000})",
     {64, 0}},
    {"vit-huge",
     R"({"model_type": "vit", "num_hidden_layers": 32, "hidden_size": 1280, "num_attention_heads": 16,
         "intermediate_size": 5120, "patch_size": 14, "num_labels": 1000})",
     {64, 0}},
    // Liu et al. 2021, Swin Transformer, section 3.3; 224 x 224 images.
    {"swin-tiny", R"({"model_type": "swin", "num_labels": 1000})", {64, 0}},
    {"swin-small", R"({"model_type": "swin", "depths": [2, 2, 18, 2], "num_labels": 1000})", {64, 0}},
    {"swin-base",
     R"({"model_type": "swin", "embed_dim": 128, "depths": [2, 2, 18, 2], "num_heads": [4, 8, 16, 32],
         "num_labels": 1000})",
     {64, 0}},
    {"swin-large",
     R"({"model_type": "swin", "embed_dim": 192, "depths": [2, 2, 18, 2], "num_heads": [6, 12, 24, 48],
         "num_labels": 1000})",
     {64, 0}},
    // Jumper et al. 2021, AlphaFold 2: the 48 blocks, crops of 256 residues and 128 sequences, three
    // forwards.
    {"evoformer-tiny",
     R"({"model_type": "evoformer", "num_blocks": 2, "c_m": 32, "c_z": 16, "msa_heads": 4, "pair_heads": 2, "c_head": 8,
         "c_outer": 8, "c_triangle": 16, "sequences": 4, "bins": 8})",
     {2, 8}},
    {"evoformer", R"({"model_type": "evoformer"})", {128, 256}},
};

}  // namespace

std::span<const Preset> presets() { return kPresets; }

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const Preset& preset : kPresets) names.emplace_back(preset.name);
  return names;
}

const Preset* find_preset(std::string_view name) {
  auto found =
      std::find_if(std::begin(kPresets), std::end(kPresets), [&](const Preset& p) { return p.name == name; });
  return found == std::end(kPresets) ? nullptr : found;
}

}  // namespace partita::model
