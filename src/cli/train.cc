#include <memory>
#include <numeric>

#include "base/error.h"
#include "base/file.h"
#include "cli/checks.h"
#include "cli/clock.h"
#include "cli/inputs.h"
#include "cli/plan_input.h"
#include "cli/pricing.h"
#include "cli/training.h"
#include "cli/verbs.h"
#include "cluster/library.h"
#include "plan/recipes/recipe.h"
#include "run/host_memory.h"
#include "search/plan_costs.h"
#include "simulate/simulate.h"

namespace partita::cli {
namespace {

struct Options {
  ModelInput model;
  ClockInput clock;
  std::string plan, calibration;
  int64_t ranks = 0, steps = 10;
  uint64_t seed = 0;
  bool pin = false;
};

// Without a plan the model runs on one device, or data parallel over the given ranks.
Plan plan_of(const Options& options, const Command& command) {
  if (options.plan.empty()) {
    ModelInput input = options.model;
    RecipeSpec spec{.dp = std::max<int64_t>(options.ranks, 1)};
    spec.optimizer = load(TrainingInput{}, input);
    return recipe(load(input), spec);
  }
  Plan plan = load_plan(options.plan, command);
  if (options.ranks && options.ranks != plan.ranks())
    input_error("--ranks {}: the plan is for {} ranks; leave --ranks out", options.ranks, plan.ranks());
  return plan;
}

// What was measured is this machine, wherever else the plan is meant to run.
Cluster cluster_of(const Options& options, const Plan& plan) {
  bool here = plan.cluster.empty() || !options.calibration.empty();
  return read_cluster(here ? fmt::format("{}xcpu", plan.ranks()) : plan.cluster);
}

Bytes needed_bytes(const Model& model, const std::vector<Bytes>& peaks) {
  return std::accumulate(peaks.begin(), peaks.end(), host_bytes(model));
}

// To lower a large plan for every rank takes minutes; rank classes say in seconds that it is too large.
void refuse_huge(const Model& model, const Plan& plan, const Prices& prices) {
  if (Bytes free = available_memory(); free == 0 || host_bytes(model) <= free) return;
  std::vector<Bytes> peaks = PricedPlan(model, plan).simulated(prices).peak_bytes;
  need_memory("train", needed_bytes(model, peaks), plan.ranks());
}

void run(const Options& options, const Command& command) {
  need_one_process("train");
  Plan plan = plan_of(options, command);
  Model model = load(options.model, plan);
  Prices prices = prices_of(cluster_of(options, plan), options.calibration);
  refuse_huge(model, plan, prices);
  command.say("lowering and certifying", plan.summary);
  Proved proved = prove_plan(model, plan, options.plan);
  const Lowered& lowered = proved.lowered();
  Trace trace = simulate::simulate(lowered.model, lowered.program, prices);
  need_memory("train", needed_bytes(model, trace.peak_bytes), plan.ranks());
  RunRequest request{.steps = options.steps, .seed = options.seed};
  request.options = run_options(options.clock, lowered.model, lowered.program, prices, trace.step_seconds);
  request.options.pinned = options.pin;
  request.batch.seed = options.seed;
  HostTensors constants = load_constants(options.model, model);
  request.weights = views_of(constants);
  command.tell(plan.summary);
  command.say("running", fmt::format("{} steps on {} ranks", options.steps, plan.ranks()));
  int64_t taken = 0;
  request.progress = [&](const StepReport& step) {
    command.tell(fmt::format("step {:>3}  loss {:.6f}  {}{}", taken++, step.loss, show_seconds(step.seconds),
                             step.skipped ? "  overflow, update skipped" : ""));
  };
  RunReport report = load_runtime().run(runnable(proved), request);
  if (!options.clock.trace.empty()) write_file(options.clock.trace, to_chrome(report.trace));
  Json steps = Json::array();
  std::string text;
  for (const StepReport& step : report.steps) {
    steps.push_back({{"loss", step.loss}, {"seconds", step.seconds}});
    if (step.skipped) steps.back()["skipped"] = true;
  }
  for (size_t r = 0; r < report.peak_bytes.size(); ++r)
    text += fmt::format("rank {}: peak {} counted, {} predicted\n", r, show_bytes(report.peak_bytes[r]),
                        show_bytes(trace.peak_bytes[r]));
  text +=
      fmt::format("predicted on {}: {} a step. ", prices.cluster().name, show_seconds(trace.step_seconds));
  Json json = {{"steps", steps},
               {"measured_peak_bytes", report.peak_bytes},
               {"predicted_peak_bytes", trace.peak_bytes},
               {"predicted_step_seconds", trace.step_seconds},
               {"clock", options.clock.clock}};
  write_tier(prices, json);
  command.answer(json, text + show_tier(prices));
}

}  // namespace

void add_train(CLI::App& app, Command& command) {
  auto options = std::make_shared<Options>();
  add_model_input(app, options->model, command);
  app.add_option("PLAN", options->plan, "a plan file; without one, data parallel over --ranks");
  app.add_option("--ranks", options->ranks,
                 "threads of this process, one a rank; by default those of PLAN, else 1")
      ->check(whole_number(1, 1024));
  app.add_option("--steps", options->steps, "how many")
      ->check(whole_number(1, 1000000))
      ->capture_default_str();
  add_calibration_flag(app, options->calibration);
  add_clock_flags(app, options->clock);
  app.add_option("--seed", options->seed, "of weights and batches")->capture_default_str();
  app.add_flag(
      "--pin", options->pin,
      "keep each rank on a core of its own, where there are enough; for a machine without other work");
  app.footer("Example: partita train gpt2.model.json plan.json --steps 20");
  app.callback([options, &command] { run(*options, command); });
}

}  // namespace partita::cli
