#include "small_models.h"

#include "base/error.h"

namespace partita::model {
namespace {

/// Those that the library has no small preset of.
constexpr Preset kSmall[] = {
    {"bert-tiny",
     R"({"model_type": "bert", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
         "intermediate_size": 128, "vocab_size": 96, "max_position_embeddings": 64})",
     {4, 16}},
    {"t5-tiny",
     R"({"model_type": "t5", "num_layers": 2, "d_model": 64, "num_heads": 4, "d_kv": 16, "d_ff": 128,
         "vocab_size": 96})",
     {4, 16}},
    {"mbart-tiny",
     R"({"model_type": "mbart", "encoder_layers": 2, "decoder_layers": 2, "d_model": 64,
         "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 128,
         "decoder_ffn_dim": 128, "vocab_size": 96, "max_position_embeddings": 64})",
     {4, 16}},
    {"vit-tiny",
     R"({"model_type": "vit", "num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4,
         "intermediate_size": 128, "image_size": 32, "patch_size": 8, "num_labels": 16})",
     {4, 0}},
    {"swin-small-windows",
     R"({"model_type": "swin", "embed_dim": 32, "depths": [2, 2], "num_heads": [2, 4], "image_size": 32,
         "patch_size": 4, "window_size": 4, "num_labels": 16})",
     {4, 0}}};

}  // namespace

const Preset& small_or_preset(std::string_view name) {
  for (const Preset& preset : kSmall)
    if (preset.name == name) return preset;
  const Preset* preset = find_preset(name);
  if (!preset) input_error("{}: no preset of this name", name);
  return *preset;
}

}  // namespace partita::model
