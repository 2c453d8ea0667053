#include "cli/inputs.h"

#include <filesystem>

#include "base/error.h"
#include "base/names.h"
#include "cli/checks.h"
#include "cli/wrong_file.h"
#include "cluster/library.h"
#include "model/build/build.h"
#include "model/retype.h"

namespace partita {
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

[[noreturn]] void refuse_unknown(const std::string& name) {
  std::vector<std::string> known = preset_names(), files = captured_beside(name);
  known.insert(known.end(), files.begin(), files.end());
  input_error(
      "model '{}': no preset is called so (see partita models) and there is no such file; give a preset, a "
      "config.json "
      "of Hugging Face or a captured *.model.json{}",
      name, did_you_mean(name, known));
}

/// A Hugging Face config by its name, or by what it says where the file was renamed.
bool is_config(const std::string& file, const std::string& text) {
  if (file.ends_with(".model.json")) return false;
  if (fs::path(file).filename() == "config.json") return true;
  return text.find("\"model_type\"") != std::string::npos && text.find("\"partita.") == std::string::npos;
}

/// The captured size of dimension `dim` of the batch: of the first batch input that has it. 0 if none has.
int64_t captured_size(const Model& model, size_t dim) {
  for (const Tensor& tensor : model.tensors) {
    if (tensor.role == Role::kBatchInput && tensor.shape.size() > dim) return tensor.shape[dim];
  }
  return 0;
}

void need_captured(const std::string& file, const char* flag, const char* what, int64_t wanted,
                   int64_t captured) {
  if (wanted && wanted != captured)
    input_error("{}: {} {}: this step was captured with a {} of {}; capture it with {}", file, flag, wanted,
                what, captured, wanted);
}

Model captured(const ModelInput& input, const std::string& text) {
  Model model = parse_model(text, input.file);
  need_captured(input.file, "--batch", "batch", input.batch, captured_size(model, 0));
  need_captured(input.file, "--seq", "sequence length", input.seq, captured_size(model, 1));
  return model;
}

Model found(const ModelInput& input) {
  StepSize size{input.batch, input.seq};
  if (const Preset* preset = find_preset(input.file)) return build_model(*preset, size);
  if (!fs::exists(input.file)) refuse_unknown(input.file);
  refuse_weights(input.file,
                 "the step itself: a preset, a config.json of Hugging Face, or what partita.capture saves");
  std::string text = read_file(input.file);
  refuse_plan(input.file, text);
  return is_config(input.file, text) ? build_model(text, input.file, size) : captured(input, text);
}

}  // namespace

bool is_built(const std::string& file) {
  if (find_preset(file)) return true;
  return fs::is_regular_file(file) && is_config(file, read_file(file));
}

void add_model_input(CLI::App& app, ModelInput& input) {
  app.add_option("MODEL", input.file,
                 "a preset (see partita models), a Hugging Face config.json or a captured *.model.json")
      ->required();
  app.add_option("--dtype", input.dtype, "retype every floating tensor: float64, float32, bf16, fp16");
  app.add_option("--batch", input.batch, "the global batch; a captured file has its own")
      ->check(whole_number(1));
  app.add_option("--seq", input.seq, "the sequence length; a captured file has its own")
      ->check(whole_number(1));
}

Model load(const ModelInput& input) {
  Model model = found(input);
  if (input.dtype.empty()) return model;
  return retype(std::move(model), parse_dtype(input.dtype, "--dtype"));
}

void add_cluster_input(CLI::App& app, ClusterInput& input, const std::string& help) {
  std::string known = "8xA100-80GB, 4x8xH100-80GB (nodes x devices), 4xcpu or a JSON file";
  CLI::Option* cluster =
      app.add_option("--cluster", input.cluster, help.empty() ? known : known + "; " + help);
  if (help.empty()) cluster->required();
  app.add_option("--memory", input.memory,
                 "bytes each device may use at most: 80GiB, 80GB, 123456; by default all but the reserve");
  app.add_option("--reserve", input.reserve,
                 fmt::format("of each device, for context, fragmentation and buffers of communication: 4GiB, "
                             "8%, 0; by default {:.2g}% of an accelerator, nothing of a CPU",
                             100 * kReserveShare));
}

Cluster load(const ClusterInput& input) { return read_cluster(input.cluster); }

MemoryLimit limit_of(const ClusterInput& input, const Cluster& cluster, Bytes planned) {
  return memory_limit(cluster, {.memory = input.memory, .reserve = input.reserve, .planned = planned});
}

}  // namespace partita
