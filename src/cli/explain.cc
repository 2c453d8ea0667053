#include "search/explain.h"

#include <memory>

#include "base/error.h"
#include "cli/plan_input.h"
#include "cli/pricing.h"
#include "cli/verbs.h"
#include "cluster/library.h"
#include "search/judge.h"

namespace partita {
namespace {

struct Options {
  std::vector<std::string> plans;
  std::string model, cluster, calibration;
};

/// The model that a plan names, or the one that is given instead.
Model model_of(const Options& options, const Plan& plan, const std::string& file) {
  ModelInput input{.file = options.model, .dtype = "", .batch = 0, .seq = 0};
  if (input.file.empty()) {
    input.file = plan.model.substr(0, plan.model.find('#'));
    input.batch = plan.batch;
  }
  Model model = load(input, plan);
  if (fingerprint(model) != plan.model)
    input_error("{}: model: this plan was made for {}, and '{}' is {}; say --model with what it was made of",
                file, plan.model, input.file, fingerprint(model));
  return model;
}

SearchRequest request_of(const Options& options, const Plan& plan, const std::string& file) {
  std::string cluster = options.cluster.empty() ? plan.cluster : options.cluster;
  if (cluster.empty()) input_error("{}: cluster: the plan names none; say --cluster", file);
  SearchRequest request{.prices = prices_of(read_cluster(cluster), options.calibration)};
  request.memory = plan.memory > 0 ? plan.memory : least_memory(request.prices.cluster());
  request.optimizer = plan.optimizer;
  return request;
}

void run_explain(const Options& options, const Command& command) {
  const std::string& file = options.plans.front();
  Plan plan = load_plan(file);
  Model model = model_of(options, plan, file);
  SearchRequest request = request_of(options, plan, file);
  Candidate mine = judged(model, plan, request);
  Json json = {{"summary", plan.summary},
               {"step_seconds", mine.step_seconds},
               {"peak_bytes", mine.peak_bytes},
               {"reasons", Json::array()}};
  write_tier(request.prices, json);
  std::string text = fmt::format("{} on {}\n", plan.summary, request.prices.cluster().name);
  for (const Reason& reason : explain(model, mine, request)) {
    json["reasons"].push_back({{"kind", reason.kind}, {"text", reason.text}, {"seconds", reason.seconds}});
    text += fmt::format("{:<13} {}\n", reason.kind, reason.text);
  }
  command.answer(json, text + show_tier(request.prices));
}

std::string show_change(const Change& change) {
  std::string cost = "only together with others";
  if (change.alone)
    cost = fmt::format("{}{} a step, {}{}", change.seconds < 0 ? "-" : "+",
                       show_seconds(std::abs(change.seconds)), change.bytes < 0 ? "-" : "+",
                       show_bytes(std::abs(change.bytes)));
  return fmt::format("{:<13} {} -> {}: {}\n", change.part, change.before, change.after, cost);
}

void run_diff(const Options& options, const Command& command) {
  const std::string& file = options.plans.front();
  Plan from = load_plan(file), to = load_plan(options.plans.back());
  Model model = model_of(options, from, file);
  SearchRequest request = request_of(options, from, file);
  Candidate before = judged(model, from, request), after = judged(model, to, request);
  Json json = {{"changes", Json::array()},
               {"step_seconds", {before.step_seconds, after.step_seconds}},
               {"peak_bytes", {before.worst_peak(), after.worst_peak()}}};
  std::string text = fmt::format("{}: {}, {}\n{}: {}, {}\n", from.summary, show_seconds(before.step_seconds),
                                 show_bytes(before.worst_peak()), to.summary,
                                 show_seconds(after.step_seconds), show_bytes(after.worst_peak()));
  for (const Change& change : changes(model, from, to, request)) {
    Json one = {
        {"part", change.part}, {"before", change.before}, {"after", change.after}, {"alone", change.alone}};
    if (change.alone) one["seconds"] = change.seconds, one["bytes"] = change.bytes;
    json["changes"].push_back(std::move(one));
    text += show_change(change);
  }
  command.answer(json, text);
}

void add_options(CLI::App& app, Options& options, int count) {
  app.add_option("PLAN", options.plans, count == 1 ? "a plan file" : "two plan files")
      ->required()
      ->expected(count);
  app.add_option("--model", options.model, "the model, where the plan's is no preset");
  app.add_option("--cluster", options.cluster, "another cluster than the plan's");
  add_calibration_flag(app, options.calibration);
}

}  // namespace

void add_explain(CLI::App& app, Command& command) {
  auto options = std::make_shared<Options>();
  add_options(app, *options, 1);
  app.footer("Example: partita explain plan.json");
  app.callback([options, &command] { run_explain(*options, command); });
}

void add_diff(CLI::App& app, Command& command) {
  auto options = std::make_shared<Options>();
  add_options(app, *options, 2);
  app.footer("Example: partita diff before.json after.json");
  app.callback([options, &command] { run_diff(*options, command); });
}

}  // namespace partita
