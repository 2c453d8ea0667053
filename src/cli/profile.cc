#include <chrono>
#include <memory>

#include "base/error.h"
#include "base/names.h"
#include "cli/inputs.h"
#include "cli/profile_show.h"
#include "cli/verbs.h"
#include "cluster/library.h"

namespace partita {
namespace {

struct Options {
  ModelInput model;
  std::string device = "A100-80GB";
  int depth = 4;
  bool at_peak = false;
  std::string optimizer = "none";
  std::vector<std::string> precision;
};

OptimizerSpec parse_optimizer(const std::string& name) {
  const std::vector<std::string> known = {"none", "sgd", "momentum", "adamw"};
  if (std::find(known.begin(), known.end(), name) == known.end())
    input_error("--optimizer: unknown \"{}\"; known are {}{}", name, fmt::join(known, ", "),
                did_you_mean(name, known));
  if (name == "momentum") return {.name = "sgd", .momentum = 0.9};
  return {.name = name};
}

/// "grad=float32" and its like.
void set_precision(const std::string& setting, Upkeep& upkeep) {
  const std::vector<std::string> known = {"grad", "master", "state"};
  size_t equals = setting.find('=');
  std::string role = setting.substr(0, equals);
  if (equals == setting.npos || std::find(known.begin(), known.end(), role) == known.end())
    input_error("--precision: \"{}\"; write for example grad=float32,master=float32,state=float32{}", setting,
                did_you_mean(role, known));
  DType dtype = parse_dtype(setting.substr(equals + 1), "--precision " + role);
  (role == "grad" ? upkeep.grad : role == "master" ? upkeep.master : upkeep.state) = dtype;
}

Upkeep upkeep_of(const Options& options) {
  Upkeep upkeep{.optimizer = parse_optimizer(options.optimizer)};
  for (const std::string& setting : options.precision) set_precision(setting, upkeep);
  return upkeep;
}

void run(const Options& options, const Command& command) {
  Upkeep upkeep = upkeep_of(options);
  Cluster cluster = library_cluster(options.device, 1, 1, "--device");
  Model model = load(options.model);
  auto start = std::chrono::steady_clock::now();
  StepProfile profile = profile_step(model, cluster, options.depth, upkeep);
  std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  Profiled profiled{model, cluster, profile, upkeep, options.at_peak};
  if (!command.json) return command.answer({}, show_profile(profiled));
  Json json = write_profile(profiled);
  json["seconds_to_profile"] = taken.count();
  command.answer(json, "");
}

}  // namespace

void add_profile(CLI::App& app, Command& command) {
  auto options = std::make_shared<Options>();
  add_model_input(app, options->model);
  app.add_option("--device", options->device, "a device of the library; `partita devices` lists them")
      ->capture_default_str();
  app.add_option("--depth", options->depth, "parts of a module's path to keep apart")
      ->capture_default_str()
      ->check(CLI::Range(0, 1000));
  app.add_flag("--at-peak", options->at_peak, "list what is alive when memory is highest");
  app.add_option("--optimizer", options->optimizer, "count its states too: none, sgd, momentum, adamw")
      ->capture_default_str();
  app.add_option("--precision", options->precision,
                 "dtypes beside the model's: grad=float32,master=float32,state=float32")
      ->delimiter(',');
  app.footer("Example: partita profile gpt2-xl --dtype bf16 --optimizer adamw --at-peak");
  app.callback([options, &command] { run(*options, command); });
}

}  // namespace partita
