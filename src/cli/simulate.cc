#include "simulate/simulate.h"

#include <memory>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "cli/inputs.h"
#include "cli/peaks.h"
#include "cli/plan_input.h"
#include "cli/pricing.h"
#include "cli/verbs.h"
#include "cluster/library.h"

namespace partita {
namespace {

struct Options {
  ModelInput model;
  std::string plan, cluster, calibration, trace, contention = "on";
};

/// In classes of ranks, unless every event is asked for or ranks of one class do not run alike.
Trace trace_of(const Options& options, const Model& model, const Plan& plan, const Prices& prices) {
  Contention contention = options.contention == "on" ? Contention::kOn : Contention::kOff;
  auto [prepared, folded] = lower_classes(model, plan, options.plan);
  std::optional<Trace> trace;
  if (options.trace.empty())
    trace = simulate(prepared.model, folded.program, folded.fold, prices, contention);
  return trace ? *std::move(trace)
               : simulate(prepared.model, expand(folded.program, folded.fold), prices, contention);
}

void run(const Options& options, const Command& command) {
  Plan plan = load_plan(options.plan);
  Model model = load(options.model, plan);
  std::string name = options.cluster.empty() ? plan.cluster : options.cluster;
  if (name.empty())
    input_error("simulate: the plan names no cluster; give --cluster, for example --cluster 4xcpu");
  Prices prices = prices_of(read_cluster(name), options.calibration);
  const Cluster& cluster = prices.cluster();
  if (num_ranks(cluster) < plan.ranks())
    input_error("--cluster {}: {} devices, the plan needs {}", name, num_ranks(cluster), plan.ranks());
  command.say("lowering and simulating", plan.summary);
  Trace trace = trace_of(options, model, plan, prices);
  if (!options.trace.empty()) write_file(options.trace, to_chrome(trace));
  std::string text = fmt::format("{} on {}: {} a step, {:.1f} % idle, {} waiting for communication\n",
                                 plan.summary, cluster.name, show_seconds(trace.step_seconds),
                                 100 * trace.bubble, show_seconds(trace.exposed_comm_seconds));
  if (trace.hidden_comm_seconds > 0)
    text += fmt::format("{} of communication beside computing\n", show_seconds(trace.hidden_comm_seconds));
  text += show_peaks(trace.peak_bytes);
  Json json = {{"step_seconds", trace.step_seconds},
               {"bubble", trace.bubble},
               {"peak_bytes", trace.peak_bytes},
               {"exposed_comm_seconds", trace.exposed_comm_seconds}};
  if (trace.hidden_comm_seconds > 0) json["hidden_comm_seconds"] = trace.hidden_comm_seconds;
  write_tier(prices, json);
  command.answer(json, text + show_tier(prices));
}

}  // namespace

void add_simulate(CLI::App& app, Command& command) {
  auto options = std::make_shared<Options>();
  add_model_input(app, options->model, command);
  app.add_option("PLAN", options->plan, "a plan file")->required();
  app.add_option("--cluster", options->cluster, "by default the plan's");
  add_calibration_flag(app, options->calibration);
  app.add_option("--contention", options->contention,
                 "on: messages share links and ranks share cores; off: what --clock virtual gives")
      ->check(CLI::IsMember({"on", "off"}));
  app.add_option("--trace", options->trace, "write a Chrome trace");
  app.footer("Example: partita simulate gpt2.model.json plan.json --cluster 8xA100-80GB");
  app.callback([options, &command] { run(*options, command); });
}

}  // namespace partita
