#include <chrono>
#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "cli/inputs.h"
#include "cli/verbs.h"
#include "model/build/build.h"

namespace partita::cli {
namespace {

struct Options {
  ModelInput model;
  std::string output;
};

int64_t parameters_of(const Model& model) {
  int64_t count = 0;
  for (const Tensor& tensor : model.tensors)
    if (tensor.role == Role::kParameter) count += numel(tensor.shape);
  return count;
}

/// "124.4 M", "1.01 T".
std::string show_count(int64_t count) {
  constexpr const char* kUnits[] = {"", " k", " M", " G", " T"};
  double value = static_cast<double>(count);
  int unit = 0;
  while (value >= 1000 && unit < 4) value /= 1000, ++unit;
  return fmt::format("{:.4g}{}", value, kUnits[unit]);
}

void list_models(const Command& command) {
  std::string text = fmt::format("{:<16} {:<10} {:>10} {:>7} {:>7} {:>6} {:>6}\n", "model", "like",
                                 "parameters", "layers", "hidden", "batch", "seq");
  Json names = Json::array(), models = Json::array();
  for (const Preset& preset : presets()) {
    ModelShape shape = shape_of(preset);
    int64_t count = parameters_of(build_model(preset));
    std::string seq = preset.size.seq ? fmt::to_string(preset.size.seq) : "-";
    text += fmt::format("{:<16} {:<10} {:>10} {:>7} {:>7} {:>6} {:>6}\n", preset.name, shape.architecture,
                        show_count(count), shape.layers, shape.hidden, preset.size.batch, seq);
    names.push_back(preset.name);
    models.push_back({{"name", preset.name},
                      {"architecture", shape.architecture},
                      {"params", count},
                      {"layers", shape.layers},
                      {"hidden", shape.hidden},
                      {"batch", preset.size.batch},
                      {"seq", preset.size.seq}});
  }
  text +=
      "--batch, --seq and --dtype change a step. Any Hugging Face config.json of these architectures works "
      "too.\n";
  command.answer({{"names", names}, {"models", models}}, text);
}

void build(const Options& options, const Command& command) {
  auto start = std::chrono::steady_clock::now();
  Model model = load(options.model);
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!options.output.empty()) write_file(options.output, to_json(model));
  int64_t params = parameters_of(model);
  Json json = {
      {"names", {model.name}},           {"name", model.name}, {"params", params}, {"ops", model.ops.size()},
      {"tensors", model.tensors.size()}, {"seconds", seconds}};
  std::string text =
      fmt::format("{}: {} parameters, {} ops, {} tensors, made in {}\n", model.name, show_count(params),
                  model.ops.size(), model.tensors.size(), show_seconds(seconds));
  if (!options.output.empty()) text += fmt::format("written to {}\n", options.output);
  command.answer(json, text);
}

}  // namespace

void add_models(CLI::App& app, Command& command) {
  auto options = std::make_shared<Options>();
  add_model_input(app, options->model, command);
  app.get_option("MODEL")->required(false);
  app.add_option("-o,--output", options->output, "write the step of MODEL here, as a *.model.json");
  app.footer("Example: partita models llama-3-8b --batch 4 --seq 4096 -o llama.model.json");
  app.callback(
      [options, &command] { options->model.file.empty() ? list_models(command) : build(*options, command); });
}

}  // namespace partita::cli
