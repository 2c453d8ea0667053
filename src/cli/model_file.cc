#include "cli/model_file.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/names.h"
#include "cli/wrong_file.h"
#include "model/build/build.h"

namespace partita::cli {
namespace {

namespace fs = std::filesystem;

/// Captured files that lie in the folder of `path`, as one would write them beside it.
std::vector<std::string> captured_beside(const fs::path& path) {
  std::vector<std::string> names;
  std::error_code unreadable;  // a folder that cannot be listed gives no suggestion
  fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  for (const auto& entry : fs::directory_iterator(folder, unreadable)) {
    if (entry.path().string().ends_with(".model.json"))
      names.push_back(path.has_parent_path() ? entry.path().string() : entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

/// "8b" of "llama-3-8b": how large a model is.
std::string_view last_part(std::string_view name) { return name.substr(name.rfind('-') + 1); }

/// The preset that a name of the Hugging Face hub stands for: `meta-llama/Meta-Llama-3-70B` has `llama-3-70b`
/// in it, `meta-llama/Llama-3.1-8B-Instruct` is near `llama-3-8b`. Empty where none is.
std::string preset_like(const std::string& name) {
  std::string plain = name.substr(name.rfind('/') == name.npos ? 0 : name.rfind('/') + 1);
  std::transform(plain.begin(), plain.end(), plain.begin(), [](unsigned char c) { return std::tolower(c); });
  std::string longest;
  for (const std::string& preset : preset_names())
    if (plain.find(preset) != plain.npos && preset.size() > longest.size()) longest = preset;
  if (!longest.empty()) return longest;
  for (const char* tail : {"-instruct", "-chat", "-base", "-hf"})
    if (plain.ends_with(tail)) plain.resize(plain.size() - std::string_view(tail).size());
  std::vector<std::string> as_large;
  for (const std::string& preset : preset_names())
    if (last_part(preset) == last_part(plain)) as_large.push_back(preset);
  std::string best = nearest(plain, as_large);
  return best.empty() ? nearest(plain, preset_names()) : best;
}

std::string suggestion(const std::string& name) {
  std::string file = nearest(name, captured_beside(name));
  if (!file.empty()) return fmt::format("; did you mean '{}'?", file);
  std::string preset = preset_like(name);
  return preset.empty() ? "" : fmt::format("; did you mean the preset {}?", preset);
}

[[noreturn]] void refuse_unknown(const std::string& name) {
  input_error(
      "model '{}': no preset has that name (see partita models) and there is no such file, and nothing is "
      "downloaded; give a preset, a config.json of Hugging Face or its folder, or a captured *.model.json{}",
      name, suggestion(name));
}

/// A Hugging Face config by its name, or by what it says where the file was renamed.
bool is_config(const std::string& file, const std::string& text) {
  if (file.ends_with(".model.json")) return false;
  if (fs::path(file).filename() == "config.json") return true;
  return text.find("\"model_type\"") != std::string::npos && text.find("\"partita.") == std::string::npos;
}

fs::path config_in(const std::string& folder) { return fs::path(folder) / "config.json"; }

[[noreturn]] void refuse_folder(const std::string& folder) {
  std::vector<std::string> files = captured_beside(config_in(folder));
  std::string other =
      files.empty() ? ", a preset or a captured *.model.json" : fmt::format(", or {}", files.front());
  input_error("{}: this folder holds no config.json; give the folder of a Hugging Face model{}", folder,
              other);
}

}  // namespace

ModelFile find_model(const std::string& name) {
  if (find_preset(name)) return {ModelKind::kPreset, name, ""};
  if (!fs::exists(name)) refuse_unknown(name);
  bool folder = fs::is_directory(name);
  if (folder && !fs::is_regular_file(config_in(name))) refuse_folder(name);
  refuse_weights(name,
                 "the step itself: a preset, a config.json of Hugging Face, or what partita.capture saves");
  std::string path = folder ? config_in(name).string() : name, text = read_file(path);
  refuse_plan(path, text);
  return {is_config(path, text) ? ModelKind::kConfig : ModelKind::kCaptured, path, text};
}

bool is_built(const std::string& name) {
  if (find_preset(name)) return true;
  if (fs::is_directory(name)) return fs::is_regular_file(config_in(name));
  return fs::is_regular_file(name) && is_config(name, read_file(name));
}

}  // namespace partita::cli
