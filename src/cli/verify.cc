#include <fmt/ranges.h>

#include <memory>
#include <optional>

#include "base/error.h"
#include "cli/constants.h"
#include "cli/inputs.h"
#include "cli/plan_input.h"
#include "cli/verbs.h"
#include "program/made.h"
#include "program/memory.h"
#include "run/host_memory.h"

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

/// The first op of the plan that makes something else than one device does when it runs the same ops.
std::optional<WrongOp> locate(const Lowered& tried, const Plan& plan, const Model& model,
                              const VerifyRequest& request) {
  Lowered one = lower(tried.model, one_device_plan(tried.model, plan.optimizer));
  return load_runtime().locate({runnable(tried), made_by(tried.model, tried.atoms, tried.program)},
                               {runnable(one), made_by(one.model, one.atoms, one.program)}, model, request);
}

struct Verdict {
  VerifyReport report;
  std::optional<WrongOp> wrong;
  std::vector<Bytes> predicted;
};

Json to_json(const Verdict& verdict, const Model& model) {
  const VerifyReport& report = verdict.report;
  Json json = {{"equal", report.equal},
               {"loss_error", report.loss_error},
               {"max_grad_error", report.max_grad_error},
               {"max_param_error", report.max_param_error},
               {"max_buffer_error", report.max_buffer_error},
               {"worst_parameter", report.worst_parameter},
               {"first_wrong_op", nullptr},
               {"tolerance", report.tolerance},
               {"measured_peak_bytes", report.peak_bytes},
               {"predicted_peak_bytes", verdict.predicted}};
  if (!verdict.wrong) return json;
  const WrongOp& wrong = *verdict.wrong;
  json["first_wrong_op"] = model[wrong.op].name;
  json["first_wrong"] = {{"target", model[wrong.op].target},
                         {"ranks", wrong.ranks},
                         {"step", wrong.step},
                         {"error", wrong.error}};
  return json;
}

std::string to_text(const Verdict& verdict, const Plan& plan, const Model& model) {
  const VerifyReport& report = verdict.report;
  std::string text = fmt::format(
      "{}: {} after two steps\nloss {:.1e}, gradients {:.1e}, parameters {:.1e}, buffers {:.1e} off "
      "(relative; tolerance {:.0e}){}\n",
      plan.summary, report.equal ? "equal to one device" : "DIFFERS from one device", report.loss_error,
      report.max_grad_error, report.max_param_error, report.max_buffer_error, report.tolerance,
      report.worst_parameter.empty() ? "" : "; worst: " + report.worst_parameter);
  if (report.equal) return text;
  if (!verdict.wrong) return text + "every op makes what it makes on one device: the update differs\n";
  const WrongOp& wrong = *verdict.wrong;
  return text + fmt::format("the first op that differs is {} ({}): {:.1e} off in step {} on rank{} {}\n",
                            model[wrong.op].name, model[wrong.op].target, wrong.error, wrong.step,
                            wrong.ranks.size() > 1 ? "s" : "", fmt::join(wrong.ranks, ", "));
}

/// Both run beside each other; then the gradients and parameters of both are compared on the host.
void need_room(const Lowered& tried, const Lowered& one, const Model& model) {
  constexpr Bytes kCopies = 5;  // the drawn weights, and gradients and parameters of both
  Bytes needed = kCopies * host_bytes(model);
  for (const Lowered* run : {&tried, &one})
    for (const RankMemory& rank : memory_of(run->model, run->program)) needed += rank.peak;
  need_memory("verify", needed, static_cast<int64_t>(tried.program.ranks.size()));
}

void run(const Options& options, Command& command) {
  need_one_process("verify");
  Plan plan = load_plan(options.plan);
  Model model = load(options.model, plan);
  if (options.ranks && options.ranks != plan.ranks())
    input_error("--ranks {}: the plan is for {} ranks; leave --ranks out", options.ranks, plan.ranks());
  if (plan.model != fingerprint(model) && !options.model.dtype.empty()) plan.model.clear();
  command.say("lowering and certifying", plan.summary);
  PhaseLog log;
  Lowered tried = lower_certified(model, plan, log, options.plan);
  Lowered one = lower(model, one_device_plan(model, plan.optimizer));
  need_room(tried, one, model);
  VerifyRequest request{.tolerance = tolerance_of(options, model)};
  request.run.steps = 2;
  request.run.seed = options.seed;
  request.run.batch = {.seed = options.seed, .ignored_labels = options.ignored_labels};
  HostTensors constants = load_constants(options.model, model);
  request.run.weights = views_of(constants);
  command.say("running two steps of the plan and of one device");
  Verdict verdict{load_runtime().verify(runnable(tried), runnable(one), request), {}, {}};
  if (!verdict.report.equal) command.say("looking for the first op that differs");
  if (!verdict.report.equal) verdict.wrong = locate(tried, plan, model, request);
  for (const RankMemory& rank : memory_of(tried.model, tried.program)) verdict.predicted.push_back(rank.peak);
  command.answer(to_json(verdict, tried.model), to_text(verdict, plan, tried.model));
  if (!verdict.report.equal) command.exit_code = kVerificationFailed;
}

}  // namespace

void add_verify(CLI::App& app, Command& command) {
  auto options = std::make_shared<Options>();
  add_model_input(app, options->model, command);
  app.add_option("PLAN", options->plan, "a plan file")->required();
  app.add_option("--ranks", options->ranks, "must be what the plan says");
  app.add_option("--seed", options->seed, "of weights and batches");
  app.add_option("--tolerance", options->tolerance, "relative; by default 1e-9 in float64, else 1e-3");
  app.add_flag("--ignored-labels", options->ignored_labels, "set labels to -100 here and there, unevenly");
  app.footer("Example: partita verify gpt2.model.json plan.json --dtype float64");
  app.callback([options, &command] { run(*options, command); });
}

}  // namespace partita
