#include "search/explain.h"

#include <memory>

#include "base/error.h"
#include "cli/headline.h"
#include "cli/plan_input.h"
#include "cli/prediction.h"
#include "cli/pricing.h"
#include "cli/show_progress.h"
#include "cli/verbs.h"
#include "search/changes.h"
#include "search/judge.h"

namespace partita::cli {
namespace {

struct Options {
  std::vector<std::string> plans;
  ClusterInput cluster;
  std::string model, calibration;
};

/// The model that a plan names, or the one that is given instead.
Model model_of(const Options& options, const Plan& plan, const std::string& file, Command& command) {
  ModelInput input{.file = options.model, .command = &command, .silent = true};
  if (input.file.empty()) input.file = plan.model.substr(0, plan.model.find('#'));
  Model model = load(input, plan);
  if (fingerprint(model) != plan.model)
    input_error(
        "{}: model: this plan was made for {}, and '{}' is {}; give the model it was made for with --model",
        file, plan.model, input.file, fingerprint(model));
  return model;
}

/// What plans are looked at with, and where its limit of memory comes from.
struct Request {
  SearchRequest search;
  MemoryLimit limit;
};

Request request_of(const Options& options, const Plan& plan, const std::string& file) {
  Prices prices = prices_of(cluster_of(options.cluster, plan, file), options.calibration);
  MemoryLimit limit = limit_of(options.cluster, prices.cluster(), plan);
  SearchRequest search{.prices = std::move(prices)};
  search.memory = limit.limit;
  search.optimizer = plan.optimizer;
  return {std::move(search), limit};
}

void run_explain(const Options& options, Command& command) {
  const std::string& file = options.plans.front();
  Plan plan = load_plan(file, command);
  Model model = model_of(options, plan, file, command);
  auto [request, limit] = request_of(options, plan, file);
  request.progress = show_progress(command);
  request.progress({"lowering and certifying the plan"});
  Candidate mine = judged(model, plan, request);
  Json json = {{"summary", plan.summary},
               {"step_seconds", mine.step_seconds},
               {"peak_bytes", mine.peak_bytes},
               {"dtype", plan.dtype},
               {"fits", mine.fits},
               {"limit_bytes", limit.limit},
               {"reserve_bytes", limit.reserve},
               {"reasons", Json::array()}};
  write_tier(request.prices, json);
  const Cluster& cluster = request.prices.cluster();
  std::string text =
      fmt::format("{} on {}, {}\n", plan.summary, cluster.name, show_dtype(plan.dtype, plan.optimizer));
  text += fmt::format("{}; limit {} per device\n", show_fit(limit, mine.worst_peak()), to_text(limit));
  text += precision_hint(plan.dtype, cluster);
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

Json write(const Difference& difference, const MemoryLimit& limit) {
  const auto& [before, after, changes, turns] = difference;
  Json json = {{"fits", {before.candidate.fits, after.candidate.fits}},
               {"dtype", {before.candidate.plan.dtype, after.candidate.plan.dtype}},
               {"limit_bytes", limit.limit},
               {"reserve_bytes", limit.reserve},
               {"changes", Json::array()},
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

std::string show(const Candidate& one, const MemoryLimit& limit) {
  return fmt::format("{}: {}, {}, {}; {}\n", one.plan.summary, show_dtype(one.plan.dtype, one.plan.optimizer),
                     show_seconds(one.step_seconds), show_bytes(one.worst_peak()),
                     show_fit(limit, one.worst_peak()));
}

std::string show(const Difference& difference, const MemoryLimit& limit, const Cluster& cluster) {
  const auto& [before, after, changes, turns] = difference;
  std::string text = show(before.candidate, limit) + show(after.candidate, limit);
  text += fmt::format("limit {} per device\n", to_text(limit));
  text += precision_hint(before.candidate.plan.dtype, cluster);
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

void run_diff(const Options& options, Command& command) {
  const std::string& file = options.plans.front();
  Plan from = load_plan(file, command), to = load_plan(options.plans.back(), command);
  need_same_step(from, to, options.plans);
  Model model = model_of(options, from, file, command);
  auto [request, limit] = request_of(options, from, file);
  Difference found = difference(model, from, to, request);
  command.answer(write(found, limit), show(found, limit, request.prices.cluster()));
}

void add_options(CLI::App& app, Options& options, int count) {
  app.add_option("PLAN", options.plans, count == 1 ? "a plan file" : "two plan files")
      ->required()
      ->expected(count);
  app.add_option("--model", options.model, "the model, if the plan was not made for a preset");
  add_cluster_input(app, options.cluster, "by default the plan's");
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

}  // namespace partita::cli
