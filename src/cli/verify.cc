#include <memory>

#include "base/error.h"
#include "cli/constants.h"
#include "cli/inputs.h"
#include "cli/plan_input.h"
#include "cli/verbs.h"
#include "program/memory.h"

namespace partita {
namespace {

constexpr int kVerificationFailed = 3;

struct Options {
  ModelInput model;
  std::string plan;
  int64_t ranks = 0;
  uint64_t seed = 0;
  double tolerance = 0;  // 0: by dtype
  bool ignored_labels = false;
};

// Sums in another order differ by rounding: 1e-9 in double precision leaves room for many terms, single
// precision has about 1e-7 a term.
double tolerance_of(const Options& options, const Model& model) {
  if (options.tolerance > 0) return options.tolerance;
  return model[model.loss].dtype == DType::kFloat64 ? 1e-9 : 1e-3;
}

void run(const Options& options, Command& command) {
  Plan plan = load_plan(options.plan);
  Model model = load(options.model, plan);
  if (options.ranks && options.ranks != plan.ranks())
    input_error("--ranks {}: the plan is for {} ranks", options.ranks, plan.ranks());
  if (plan.model != fingerprint(model) && !options.model.dtype.empty()) plan.model.clear();
  PhaseLog log;
  Lowered tried = lower_certified(model, plan, log, options.plan);
  Lowered one = lower(model, one_device_plan(model, plan.optimizer));
  VerifyRequest request{.tolerance = tolerance_of(options, model)};
  request.run.steps = 2;
  request.run.seed = options.seed;
  request.run.batch = {.seed = options.seed, .ignored_labels = options.ignored_labels};
  HostTensors constants = load_constants(options.model, model);
  request.run.weights = views_of(constants);
  VerifyReport report = load_runtime().verify(runnable(tried), runnable(one), request);
  std::vector<Bytes> predicted;
  for (const RankMemory& rank : memory_of(tried.model, tried.program)) predicted.push_back(rank.peak);
  Json json = {{"equal", report.equal},
               {"loss_error", report.loss_error},
               {"max_grad_error", report.max_grad_error},
               {"max_param_error", report.max_param_error},
               {"max_buffer_error", report.max_buffer_error},
               {"worst_parameter", report.worst_parameter},
               {"first_wrong_op", nullptr},
               {"tolerance", report.tolerance},
               {"measured_peak_bytes", report.peak_bytes},
               {"predicted_peak_bytes", predicted}};
  std::string text = fmt::format(
      "{}: {} after two steps\nloss {:.1e}, gradients {:.1e}, parameters {:.1e}, buffers {:.1e} off "
      "(relative; "
      "tolerance {:.0e}){}\n",
      plan.summary, report.equal ? "equal to one device" : "DIFFERS from one device", report.loss_error,
      report.max_grad_error, report.max_param_error, report.max_buffer_error, report.tolerance,
      report.worst_parameter.empty() ? "" : "; worst: " + report.worst_parameter);
  command.answer(json, text);
  if (!report.equal) command.exit_code = kVerificationFailed;
}

}  // namespace

void add_verify(CLI::App& app, Command& command) {
  auto options = std::make_shared<Options>();
  add_model_input(app, options->model);
  app.add_option("PLAN", options->plan, "a plan file")->required();
  app.add_option("--ranks", options->ranks, "must be what the plan says");
  app.add_option("--seed", options->seed, "of weights and batches");
  app.add_option("--tolerance", options->tolerance, "relative; by default 1e-9 in float64, else 1e-3");
  app.add_flag("--ignored-labels", options->ignored_labels, "set labels to -100 here and there, unevenly");
  app.footer("Example: partita verify gpt2.model.json plan.json --dtype float64");
  app.callback([options, &command] { run(*options, command); });
}

}  // namespace partita
