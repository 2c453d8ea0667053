#pragma once

#include "model/build/build.h"
#include "model/build/config.h"

namespace partita::model::build {

/// An architecture with a builder: one row. Adding an architecture means adding a file and a row in
/// family.cc.
struct Family {
  std::string_view type;     // Hugging Face's model_type
  std::string_view head;     // the class whose training step is built; empty where Hugging Face has none
  std::string_view keys_of;  // whose keys a config has
  Model (*build)(const Config& config, StepSize size);
  const char* layers_key;
  int64_t layers;  // Hugging Face's defaults
  const char* hidden_key;
  int64_t hidden;
  bool text = true;  // has a sequence length; an image model has none
};
std::span<const Family> families();

Model build_gpt2(const Config& config, StepSize size);
Model build_llama(const Config& config, StepSize size);
Model build_mistral(const Config& config, StepSize size);
Model build_mixtral(const Config& config, StepSize size);
Model build_bert(const Config& config, StepSize size);
Model build_vit(const Config& config, StepSize size);
Model build_t5(const Config& config, StepSize size);
Model build_mbart(const Config& config, StepSize size);
Model build_swin(const Config& config, StepSize size);
Model build_evoformer(const Config& config, StepSize size);

/// Throws InputError unless a step of this length fits into `positions` (the value of `key`).
void need_positions(const Config& config, const char* key, int64_t positions, int64_t seq);

}  // namespace partita::model::build
