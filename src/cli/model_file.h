#pragma once

#include <string>

namespace partita::cli {

/// What MODEL of the command line turns out to be.
enum class ModelKind { kPreset, kConfig, kCaptured };
struct ModelFile {
  ModelKind kind;
  std::string path;  // of the file: a folder stands for the config.json in it; the name of a preset
  std::string text;  // what the file holds
};

/// InputError says what to give instead where MODEL is no preset, no file, or a folder without config.json.
/// Nothing is downloaded.
ModelFile find_model(const std::string& name);

/// Is a step built of it, for any batch and sequence length: of a preset or a Hugging Face config?
bool is_built(const std::string& name);

}  // namespace partita::cli
