#include "model/build/family.h"

#include <fmt/format.h>

namespace partita::model::build {
namespace {

constexpr Family kFamilies[] = {
    {"gpt2", "GPT2LMHeadModel", "GPT2Config", build_gpt2, "n_layer", 12, "n_embd", 768},
    {"llama", "LlamaForCausalLM", "LlamaConfig", build_llama, "num_hidden_layers", 32, "hidden_size", 4096},
    {"mistral", "MistralForCausalLM", "MistralConfig", build_mistral, "num_hidden_layers", 32, "hidden_size",
     4096},
    {"mixtral", "MixtralForCausalLM", "MixtralConfig", build_mixtral, "num_hidden_layers", 32, "hidden_size",
     4096},
    {"bert", "BertForMaskedLM", "BertConfig", build_bert, "num_hidden_layers", 12, "hidden_size", 768},
    {"t5", "T5ForConditionalGeneration", "T5Config", build_t5, "num_layers", 6, "d_model", 512},
    {"mbart", "MBartForConditionalGeneration", "MBartConfig", build_mbart, "encoder_layers", 12, "d_model",
     1024},
    {"vit", "ViTForImageClassification", "ViTConfig", build_vit, "num_hidden_layers", 12, "hidden_size", 768,
     false},
    {"swin", "SwinForImageClassification", "SwinConfig", build_swin, "depths", 12, "embed_dim", 96, false},
    {"evoformer", "", "the Evoformer builder", build_evoformer, "num_blocks", 48, "c_z", 128},
};

}  // namespace

std::span<const Family> families() { return kFamilies; }

void need_positions(const Config& config, const char* key, int64_t positions, int64_t seq) {
  if (seq > positions)
    config.in().fail(fmt::format("{} is {}, which holds no sequence of {}; take --seq {} or less", key,
                                 positions, seq, positions));
}

}  // namespace partita::model::build
