#include "cli/inputs.h"

#include "base/error.h"
#include "base/file.h"
#include "base/names.h"
#include "cli/ask.h"
#include "cli/checks.h"
#include "cli/model_file.h"
#include "cluster/library.h"
#include "model/build/build.h"
#include "model/inferred.h"
#include "model/rewrite/retype.h"
#include "run/constants.h"

namespace partita::cli {
namespace {

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

/// The model that stands in place of a file; null: none does.
const Model* given(const ModelInput& input) {
  const Question* question = input.command ? input.command->question() : nullptr;
  if (!question) return nullptr;
  auto found = question->models.find(input.file);
  return found == question->models.end() ? nullptr : found->second.get();
}

/// `model`: of the file as it was captured.
Model captured(const ModelInput& input, const std::string& file, Model model) {
  need_captured(file, "--batch", "batch", input.batch, captured_size(model, 0));
  need_captured(file, "--seq", "sequence length", input.seq, captured_size(model, 1));
  return input.no_inferred_rows ? without_inferred_rows(std::move(model)) : model;
}

Model built(const ModelInput& input, const ModelFile& file) {
  std::vector<std::string> notes;
  Model model = build_model(file.text, file.path, {input.batch, input.seq}, &notes);
  for (const std::string& line : notes) note(input, line);
  return model;
}

}  // namespace

void note(const ModelInput& input, const std::string& line) {
  if (input.command && !input.silent) input.command->note(line);
}

void add_model_input(CLI::App& app, ModelInput& input, Command& command) {
  input.command = &command;
  app.add_option("MODEL", input.file,
                 "a preset (see partita models), a Hugging Face config.json or its folder, or a captured "
                 "*.model.json")
      ->required();
  app.add_option("--dtype", input.dtype, "retype every floating tensor: float64, float32, bf16, fp16");
  app.add_option("--batch", input.batch, "global batch size; a captured file has its own")
      ->check(whole_number(1));
  app.add_option("--seq", input.seq, "sequence length; a captured file has its own")->check(whole_number(1));
  app.add_flag("--no-inferred-rows", input.no_inferred_rows,
               "keep ops whole whose rows capture found by experiment");
}

std::optional<AskedDType> asked_dtype(const ModelInput& input) {
  if (!input.dtype.empty() || given(input)) return std::nullopt;
  ModelFile file = find_model(input.file);
  if (file.kind != ModelKind::kConfig) return std::nullopt;
  std::optional<ConfigDType> given = config_dtype(file.text, file.path);
  if (!given) return std::nullopt;
  std::optional<DType> dtype = find_dtype(given->name);
  if (!dtype || !is_floating(*dtype) || is_complex(*dtype))
    input_error(
        "{}: {}: \"{}\" is no dtype that a step is built in; give --dtype bf16, fp16, float32 or float64",
        file.path, given->key, given->name);
  if (*dtype == DType::kFloat32) return std::nullopt;  // as it is built
  return AskedDType{fmt::format("{}: {} {}", file.path, given->key, given->name), *dtype};
}

bool is_built(const ModelInput& input) { return !given(input) && is_built(input.file); }

Model load_as_written(const ModelInput& input) {
  if (const Model* model = given(input)) return captured(input, input.file, *model);
  ModelFile file = find_model(input.file);
  if (file.kind == ModelKind::kPreset) return build_model(*find_preset(file.path), {input.batch, input.seq});
  if (file.kind == ModelKind::kConfig) return built(input, file);
  return captured(input, file.path, parse_model(file.text, file.path));
}

Model load(const ModelInput& input) {
  std::optional<AskedDType> asked = asked_dtype(input);
  Model model = load_as_written(input);
  if (asked) {
    note(input, fmt::format("{} taken as --dtype {}", asked->text, dtype_name(asked->dtype)));
    return retype(std::move(model), asked->dtype);
  }
  if (input.dtype.empty()) return model;
  return retype(std::move(model), parse_dtype(input.dtype, "--dtype"));
}

HostTensors load_constants(const ModelInput& input, const Model& model) {
  if (!given(input)) return run::load_constants(input.file, model);
  return constants_of(model, input.command->question()->constants, input.file, input.file);
}

void add_cluster_input(CLI::App& app, ClusterInput& input, const std::string& help) {
  std::string known = "8xA100-80GB, 4x8xH100-80GB (nodes x devices), 4xcpu or a JSON file";
  CLI::Option* cluster =
      app.add_option("--cluster", input.cluster, help.empty() ? known : known + "; " + help);
  if (help.empty()) cluster->required();
  app.add_option("--memory", input.memory,
                 "bytes each device may use at most: 80GiB, 80GB, 123456; by default all but the reserve");
  app.add_option("--reserve", input.reserve,
                 fmt::format("memory of each device left for context, fragmentation and communication "
                             "buffers: 4GiB, 8%, 0; by default {:.2g}% of an accelerator, nothing of a CPU",
                             100 * kReserveShare));
}

Cluster load(const ClusterInput& input) { return read_cluster(input.cluster); }

MemoryLimit limit_of(const ClusterInput& input, const Cluster& cluster, Bytes planned) {
  return memory_limit(cluster, {.memory = input.memory, .reserve = input.reserve, .planned = planned});
}

}  // namespace partita::cli
