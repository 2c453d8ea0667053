#include <chrono>
#include <memory>

#include "base/error.h"
#include "base/names.h"
#include "cli/checks.h"
#include "cli/inputs.h"
#include "cli/pricing.h"
#include "cli/profile_show.h"
#include "cli/training.h"
#include "cli/verbs.h"
#include "cluster/library.h"
#include "model/rewrite/recompute.h"

namespace partita::cli {
namespace {

struct Options {
  ModelInput model;
  std::string device;  // empty: A100-80GB, or cpu where --calibration measured it
  int depth = 4;
  bool at_peak = false;
  std::string optimizer = "none";
  std::vector<std::string> precision;
  std::string recompute = "none";
  std::string fit;
  std::string calibration;
};

OptimizerSpec parse_optimizer(const std::string& name) {
  const std::vector<std::string> known = {"none", "sgd", "momentum", "adamw"};
  if (std::find(known.begin(), known.end(), name) == known.end())
    input_error("--optimizer: unknown \"{}\"; known are {}{}", name, fmt::join(known, ", "),
                did_you_mean(name, known));
  return optimizer_named(name);
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

Model step_of(const ModelInput& input, const std::string& policy) {
  Model model = load(input);
  Recompute chosen = parse_recompute(policy, "--recompute");
  if (chosen == Recompute::kNone) return model;
  std::vector<int32_t> groups = recompute_groups(model, chosen);
  if (std::all_of(groups.begin(), groups.end(), [](int32_t group) { return group < 0; }))
    input_error("--recompute {}: {} has {}; try --recompute {}", policy, model.name,
                chosen == Recompute::kFull ? "no repeated layers" : "no attention that keeps its scores",
                chosen == Recompute::kFull ? "selective" : "full");
  return recompute(model, groups);
}

/// What is asked of a profile, but for the size of the batch.
struct Question {
  const Options& options;
  Prices prices;
  Upkeep upkeep;

  Bytes peak(int64_t batch) const {
    ModelInput input = options.model;
    input.batch = batch;
    return profile_step(step_of(input, options.recompute), prices, 0, upkeep).memory.peak;
  }
};

/// The largest batch whose peak is within `limit`. REQUIRES: batch 1 fits. The peak grows with the batch.
int64_t largest_batch(const Question& question, Bytes limit) {
  constexpr int64_t kMost = int64_t{1} << 24;
  int64_t fits = 1, fails = 2;
  while (fails < kMost && question.peak(fails) <= limit) fits = fails, fails *= 2;
  while (fails - fits > 1) {
    int64_t middle = fits + (fails - fits) / 2;
    (question.peak(middle) <= limit ? fits : fails) = middle;
  }
  return fits;
}

/// Sets the batch of `input` to the largest that fits.
void fit_batch(const Question& question, ModelInput& input) {
  const Options& options = question.options;
  Bytes limit = parse_bytes(options.fit, "--fit");
  if (limit < 1) input_error("--fit: 0 bytes hold nothing; write for example 80GiB");
  if (options.model.batch) input_error("--fit finds the batch; drop --batch");
  bool captured = options.model.file.ends_with(".model.json");
  Bytes least = captured ? question.peak(0) : question.peak(1);
  if (least > limit)
    throw Infeasible(
        fmt::format("--fit {}: {} needs {} {}; try --recompute full, --dtype bf16, or several devices with "
                    "`partita plan`",
                    show_bytes(limit), options.model.file, show_bytes(least),
                    captured ? "with the batch it was captured with" : "with a batch of 1"));
  if (!captured) input.batch = largest_batch(question, limit);
}

Cluster device_of(const Options& options) {
  const char* usual = options.calibration.empty() ? "A100-80GB" : "cpu";
  return library_cluster(options.device.empty() ? usual : options.device, 1, 1, "--device");
}

void run(const Options& options, const Command& command) {
  Question question{options, prices_of(device_of(options), options.calibration), upkeep_of(options)};
  ModelInput input = options.model;
  command.say(options.fit.empty() ? "profiling" : "looking for the largest batch", input.file);
  if (!options.fit.empty()) fit_batch(question, input);
  Model model = step_of(input, options.recompute);
  auto start = std::chrono::steady_clock::now();
  StepProfile profile = profile_step(model, question.prices, options.depth, question.upkeep);
  std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  Profiled profiled{model, question.prices, profile, question.upkeep, options.at_peak};
  if (!command.json) {
    std::string text = show_profile(profiled);
    if (input.batch && !options.fit.empty())
      text += fmt::format("largest batch within {}: {}\n", options.fit, input.batch);
    return command.answer({}, text);
  }
  Json json = write_profile(profiled);
  json["seconds_to_profile"] = taken.count();
  if (!options.fit.empty()) json["largest_batch"] = input.batch ? Json(input.batch) : Json();
  command.answer(json, "");
}

}  // namespace

void add_profile(CLI::App& app, Command& command) {
  auto options = std::make_shared<Options>();
  add_model_input(app, options->model, command);
  app.add_option("--device", options->device, "a device of the library; `partita devices` lists them")
      ->default_str("A100-80GB, with --calibration cpu");
  app.add_option("--depth", options->depth, "parts of a module's path to keep apart")
      ->capture_default_str()
      ->check(whole_number(0, 1000));
  app.add_flag("--at-peak", options->at_peak, "list what is alive when memory is highest");
  app.add_option("--optimizer", options->optimizer, "count its states too: none, sgd, momentum, adamw")
      ->capture_default_str();
  app.add_option("--precision", options->precision,
                 "dtypes beside the model's: grad=float32,master=float32,state=float32")
      ->delimiter(',');
  app.add_option("--recompute", options->recompute,
                 "recompute in backward instead of saving activations: none, selective (attention scores), "
                 "full (every layer)")
      ->capture_default_str();
  app.add_option("--fit", options->fit, "find the largest batch whose peak is within this: 80GiB");
  add_calibration_flag(app, options->calibration);
  app.footer("Example: partita profile gpt2-xl --dtype bf16 --optimizer adamw --at-peak");
  app.callback([options, &command] { run(*options, command); });
}

}  // namespace partita::cli
