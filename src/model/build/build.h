#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/model.h"

namespace partita::model {

/// The global batch and the sequence length of a step to build; 0 takes the default.
struct StepSize {
  int64_t batch = 0;
  int64_t seq = 0;
};

/// A model known by name: a Hugging Face config and the sizes a step has where none are given.
struct Preset {
  std::string_view name;
  std::string_view config;  // JSON
  StepSize size;
};
std::span<const Preset> presets();
std::vector<std::string> preset_names();

/// Null where no preset is called so.
const Preset* find_preset(std::string_view name);

/// Builds a whole training step in float32: forward, loss and backward, the ops PyTorch would run for the
/// Hugging Face module without dropout. InputError where a size does not fit the config.
Model build_model(const Preset& preset, StepSize size = {});

/// The same from a Hugging Face config.json. InputError for an architecture without a builder, or a setting
/// that none honours. `notes`: what a reader should know of it, one sentence each.
Model build_model(std::string_view config, std::string_view where, StepSize size = {},
                  std::vector<std::string>* notes = nullptr);

/// The dtype that a config.json names, and the key that names it: "dtype", or "torch_dtype" as transformers 4
/// has it. None where neither is there.
struct ConfigDType {
  std::string key, name;
};
std::optional<ConfigDType> config_dtype(std::string_view config, std::string_view where);

/// What a table of models shows: layers and width, as the config says.
struct ModelShape {
  std::string architecture;
  int64_t layers = 0, hidden = 0;
};
ModelShape shape_of(const Preset& preset);

}  // namespace partita::model
