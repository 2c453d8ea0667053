#include "simulate/simulate.h"

#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "cli/checks.h"
#include "cli/inputs.h"
#include "cli/peaks.h"
#include "cli/plan_input.h"
#include "cli/prediction.h"
#include "cli/pricing.h"
#include "cli/verbs.h"

namespace partita::cli {
namespace {

constexpr int kDoesNotFit = 1;

struct Options {
  ModelInput model;
  ClusterInput cluster;
  std::string plan, calibration, trace, contention = "on";
  bool must_fit = false;
};

void run(const Options& options, Command& command) {
  Plan plan = load_plan(options.plan, command);
  Model model = load(options.model, plan);
  Prices prices = prices_of(cluster_of(options.cluster, plan, "simulate"), options.calibration);
  PlanQuestion question{model, plan, prices, options.plan};
  question.contention = options.contention == "on" ? Contention::kOn : Contention::kOff;
  question.every_rank = !options.trace.empty();
  command.say("lowering and simulating", plan.summary);
  Prediction found = predict(question, limit_of(options.cluster, prices.cluster(), plan));
  if (!options.trace.empty()) write_file(options.trace, to_chrome(found.trace));
  command.answer(to_json(question, found), to_text(question, found));
  if (options.must_fit && !found.fits()) command.exit_code = kDoesNotFit;
}

}  // namespace

void add_simulate(CLI::App& app, Command& command) {
  auto options = std::make_shared<Options>();
  add_model_input(app, options->model, command);
  app.add_option("PLAN", options->plan, "a plan file")->required();
  add_cluster_input(app, options->cluster, "by default the plan's");
  add_calibration_flag(app, options->calibration);
  app.add_option("--contention", options->contention,
                 "on: messages share links and ranks share cores; off: what --clock virtual gives")
      ->check(one_of({"on", "off"}));
  app.add_option("--trace", options->trace, "write a Chrome trace");
  app.add_flag("--must-fit", options->must_fit, "end with exit code 1 where the plan does not fit");
  app.footer("Example: partita simulate gpt2.model.json plan.json --cluster 8xA100-80GB");
  app.callback([options, &command] { run(*options, command); });
}

}  // namespace partita::cli
