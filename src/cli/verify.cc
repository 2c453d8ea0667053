#include <fmt/ranges.h>

#include <memory>
#include <optional>

#include "base/error.h"
#include "certify/made.h"
#include "cli/inputs.h"
#include "cli/plan_input.h"
#include "cli/verbs.h"
#include "model/inferred.h"
#include "profile/memory.h"
#include "program/assumed.h"
#include "program/memory.h"
#include "run/host_memory.h"
#include "run/verdict.h"

namespace partita::cli {
namespace {

struct Options {
  ModelInput model;
  std::string plan;
  int64_t ranks = 0;
  VerifySettings settings;
};

/// The first op of the plan that makes something else than one device does when it runs the same ops. This
/// one device is a lowered Program: it only says where to look, of a difference that the reference has found.
std::optional<WrongOp> locate(const Proved& proved, const Plan& plan, const Model& model,
                              const VerifyRequest& request) {
  const Model& stated = proved.lowered().model;
  Proved one = prove::prove(stated, one_device_plan(stated, plan.optimizer));
  return load_runtime().locate(known_step(proved), known_step(one), model, request);
}

/// Rows that nobody vouches for come first where something differs.
std::string suspects(const Verdict& verdict, const Model& model) {
  if (verdict.assumed.empty()) return "";
  std::string text = fmt::format("certified_assuming: [{}]\n", fmt::join(verdict.assumed, ", "));
  if (!verdict.wrong || !is_inferred(model[verdict.wrong->op])) return text;
  return text +
         fmt::format("the inferred row of {} is wrong; plan with --no-inferred-rows, and please report it\n",
                     model[verdict.wrong->op].target);
}

std::string to_text(const Verdict& verdict, const Plan& plan, const Model& model) {
  const VerifyReport& report = verdict.report;
  std::string text = fmt::format(
      "{}: {} after three steps\nloss {:.1e}, gradients {:.1e}, parameters {:.1e}, buffers {:.1e} off "
      "(relative; tolerance {:.0e}){}\n",
      plan.summary, report.equal ? "equal to one device" : "DIFFERS from one device", report.loss_error,
      report.max_grad_error, report.max_param_error, report.max_buffer_error, report.tolerance,
      report.worst_parameter.empty() ? "" : "; worst: " + report.worst_parameter);
  if (report.equal) return text;
  text += suspects(verdict, model);
  if (!verdict.wrong) return text + "every op makes what it makes on one device: the update differs\n";
  const WrongOp& wrong = *verdict.wrong;
  return text + fmt::format("the first op that differs is {} ({}): {:.1e} off in step {} on rank{} {}\n",
                            model[wrong.op].name, model[wrong.op].target, wrong.error, wrong.step,
                            wrong.ranks.size() > 1 ? "s" : "", fmt::join(wrong.ranks, ", "));
}

/// Both run beside each other; then the gradients and parameters of both are compared on the host.
void need_room(const Lowered& tried, const Model& model, const OptimizerSpec& optimizer) {
  constexpr Bytes kCopies = 12;  // drawn and clipped; gradients of three steps and parameters of both
  Upkeep upkeep{optimizer, optimizer.precision.grad, optimizer.precision.master, optimizer.precision.master};
  Bytes needed = kCopies * host_bytes(model);
  needed += memory_of_step(model, find_storages(model), std::vector<Bytes>(model.ops.size()), upkeep).peak;
  for (const RankMemory& rank : memory_of(tried.model, tried.program)) needed += rank.peak;
  need_memory("verify", needed, static_cast<int64_t>(tried.program.ranks.size()));
}

void run(const Options& options, Command& command) {
  need_one_process("verify");
  Plan plan = load_plan(options.plan, command);
  Model model = load(options.model, plan);
  if (options.ranks && options.ranks != plan.ranks())
    input_error("--ranks {}: the plan is for {} ranks; leave --ranks out", options.ranks, plan.ranks());
  if (plan.model != fingerprint(model) && !options.model.dtype.empty()) plan.model.clear();
  command.say("lowering and certifying", plan.summary);
  Proved proved = prove_plan(model, plan, options.plan);
  const Lowered& tried = proved.lowered();
  need_room(tried, model, plan.optimizer);
  HostTensors constants = load_constants(options.model, model);
  VerifyRequest request = verify_request(model, views_of(constants), options.settings);
  command.say("running three steps of the plan and of one device");
  Verdict verdict{.report = load_runtime().verify(runnable(proved), {model, plan.optimizer}, request),
                  .assumed = assumed_rows(tried.model, tried.program)};
  if (!verdict.report.equal) command.say("looking for the first op that differs");
  if (!verdict.report.equal) verdict.wrong = locate(proved, plan, model, request);
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
  app.add_option("--seed", options->settings.seed, "of weights and batches");
  app.add_option("--tolerance", options->settings.tolerance,
                 "relative; by default 1e-9 in float64, else 1e-3");
  app.add_flag("--ignored-labels", options->settings.ignored_labels,
               "set labels to -100 here and there, unevenly");
  app.footer("Example: partita verify gpt2.model.json plan.json --dtype float64");
  app.callback([options, &command] { run(*options, command); });
}

}  // namespace partita::cli
