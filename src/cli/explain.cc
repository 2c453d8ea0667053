#include "search/explain.h"

#include <memory>

#include "base/error.h"
#include "cli/plan_input.h"
#include "cli/pricing.h"
#include "cli/show_progress.h"
#include "cli/verbs.h"
#include "cluster/library.h"
#include "search/changes.h"
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
  if (input.file.empty()) input.file = plan.model.substr(0, plan.model.find('#'));
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
  request.progress = show_progress(command);
  request.progress({"lowering and certifying the plan"});
  Candidate mine = judged(model, plan, request);
  Json json = {{"summary", plan.summary},
               {"step_seconds", mine.step_seconds},
               {"peak_bytes", mine.peak_bytes},
               {"reasons", Json::array()}};
  write_tier(request.prices, json);
  std::string text = fmt::format("{} on {}\n", plan.summary, request.prices.cluster().name);
  for (const Reason& reason : explain(model, plan, request)) {
    json["reasons"].push_back({{"kind", reason.kind}, {"text", reason.text}, {"seconds", reason.seconds}});
    text += fmt::format("{:<13} {}\n", reason.kind, reason.text);
  }
  command.answer(json, text + show_tier(request.prices));
}

std::string signed_seconds(Seconds seconds) {
  return (seconds < 0 ? "-" : "+") + show_seconds(std::abs(seconds));
}

std::string signed_bytes(Bytes bytes) { return (bytes < 0 ? "-" : "+") + show_bytes(std::abs(bytes)); }

std::string show_change(const Change& change) {
  std::string cost = "only together with others";
  if (change.alone)
    cost = fmt::format("{} a step, {}", signed_seconds(change.seconds), signed_bytes(change.bytes));
  return fmt::format("{:<13} {} -> {}: {}\n", change.part, change.from, change.to, cost);
}

/// Where the time of both plans goes.
struct TimeRow {
  const char* name;
  Seconds PlanCosts::*seconds;
};
constexpr TimeRow kTimeRows[] = {
    {"computing", &PlanCosts::computing}, {"waiting", &PlanCosts::waiting}, {"idle", &PlanCosts::idle}};

std::string show_categories(const Difference& difference) {
  std::string text;
  for (const TimeRow& row : kTimeRows) {
    Seconds a = difference.before.*row.seconds, b = difference.after.*row.seconds;
    text += fmt::format("{:<13} {} -> {}: {}\n", row.name, show_seconds(a), show_seconds(b),
                        signed_seconds(b - a));
  }
  for (int cause = 0; cause < kCauses; ++cause) {
    Bytes a = difference.before.bytes[cause], b = difference.after.bytes[cause];
    if (a > 0 || b > 0)
      text += fmt::format("{:<13} {} -> {}: {}\n", name_of(static_cast<Cause>(cause)), show_bytes(a),
                          show_bytes(b), signed_bytes(b - a));
  }
  return text;
}

Json write(const Difference& difference) {
  const auto& [before, after, changes, turns] = difference;
  Json json = {{"changes", Json::array()},
               {"turns", Json::array()},
               {"step_seconds", {before.candidate.step_seconds, after.candidate.step_seconds}},
               {"peak_bytes", {before.candidate.worst_peak(), after.candidate.worst_peak()}}};
  for (const TimeRow& row : kTimeRows) json["seconds"][row.name] = {before.*row.seconds, after.*row.seconds};
  for (int cause = 0; cause < kCauses; ++cause)
    json["bytes"][std::string(name_of(static_cast<Cause>(cause)))] = {before.bytes[cause],
                                                                      after.bytes[cause]};
  for (const Change& change : changes) {
    Json one = {
        {"part", change.part}, {"before", change.before}, {"after", change.after}, {"alone", change.alone}};
    if (change.alone) one["seconds"] = change.seconds, one["bytes"] = change.bytes;
    json["changes"].push_back(std::move(one));
  }
  for (const ChangeStep& turn : turns)
    json["turns"].push_back({{"parts", turn.parts}, {"seconds", turn.seconds}, {"bytes", turn.bytes}});
  return json;
}

std::string show(const Difference& difference) {
  const auto& [before, after, changes, turns] = difference;
  std::string text;
  for (const PlanCosts* plan : {&before, &after})
    text += fmt::format("{}: {}, {}\n", plan->candidate.plan.summary,
                        show_seconds(plan->candidate.step_seconds), show_bytes(plan->candidate.worst_peak()));
  if (changes.empty()) return text + "They run the same.\n";
  text += show_categories(difference);
  for (const Change& change : changes) text += show_change(change);
  std::vector<std::string> steps;
  for (const ChangeStep& turn : turns)
    steps.push_back(fmt::format("{}: {}, {}", fmt::join(turn.parts, " with "), signed_seconds(turn.seconds),
                                signed_bytes(turn.bytes)));
  return text + fmt::format("One after another: {}.\n", fmt::join(steps, "; then "));
}

void need_same_step(const Plan& from, const Plan& to, const std::vector<std::string>& files) {
  if (from.model == to.model) return;
  auto of = [](const Plan& plan) {
    return fmt::format("{} with a batch of {}{}", plan.model.substr(0, plan.model.find('#')), plan.batch,
                       plan.seq ? fmt::format(" and {} tokens a sample", plan.seq) : "");
  };
  input_error("{}: this plan is for {}, {} is for {}; compare plans of one step", files.back(), of(to),
              files.front(), of(from));
}

void run_diff(const Options& options, const Command& command) {
  const std::string& file = options.plans.front();
  Plan from = load_plan(file), to = load_plan(options.plans.back());
  need_same_step(from, to, options.plans);
  Model model = model_of(options, from, file);
  Difference found = difference(model, from, to, request_of(options, from, file));
  command.answer(write(found), show(found));
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
