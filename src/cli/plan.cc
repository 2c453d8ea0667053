#include "plan/plan.h"

#include <chrono>
#include <memory>

#include "base/error.h"
#include "cli/inputs.h"
#include "cli/plan_input.h"
#include "cli/pricing.h"
#include "cli/training.h"
#include "cli/verbs.h"
#include "search/search.h"

namespace partita {
namespace {

struct Options {
  ModelInput model;
  ClusterInput cluster;
  TrainingInput training;
  std::string calibration, output;
  size_t top = 5;
  std::vector<std::string> allow, forbid;
};

std::string table(const SearchResult& result, const SearchRequest& request, size_t top) {
  size_t width = 36;
  for (const auto* list : {&result.fitting, &result.beyond})
    for (size_t i = 0; i < std::min(top, list->size()); ++i)
      width = std::max(width, (*list)[i].plan.summary.size());
  std::string text = fmt::format("{:<{}} {:>10} {:>12}  {}\n", "plan", width, "step", "peak/device", "why");
  auto row = [&](const Candidate& c) {
    text += fmt::format("{:<{}} {:>10} {:>12}  {}\n", c.plan.summary, width, show_seconds(c.step_seconds),
                        show_bytes(c.worst_peak()), c.reason);
  };
  for (size_t i = 0; i < std::min(top, result.fitting.size()); ++i) row(result.fitting[i]);
  size_t more = result.fitting.size() - std::min(top, result.fitting.size());
  if (more) text += fmt::format("... and {} more that fit\n", more);
  for (size_t i = 0; i < std::min(top, result.beyond.size()); ++i) row(result.beyond[i]);
  more = result.beyond.size() - std::min(top, result.beyond.size());
  if (more) text += fmt::format("... and {} more that do not fit\n", more);
  return text +
         fmt::format("{} plans lowered and simulated on {}, {} per device.\n", result.evaluated,
                     request.prices.cluster().name, show_bytes(request.memory)) +
         show_tier(request.prices);
}

// A sample counts as many tokens as the first batch input has positions.
int64_t tokens_of(const Model& model) {
  for (const Tensor& tensor : model.tensors)
    if (tensor.role == Role::kBatchInput) return numel(tensor.shape);
  return 0;
}

Json write(const Candidate& candidate, int64_t tokens) {
  return {{"summary", candidate.plan.summary},
          {"step_seconds", candidate.step_seconds},
          {"tokens_per_second", static_cast<double>(tokens) / candidate.step_seconds},
          {"peak_bytes", candidate.peak_bytes},
          {"bubble", candidate.bubble},
          {"exposed_comm_seconds", candidate.exposed_comm_seconds},
          {"reason", candidate.reason},
          {"plan", Json::parse(to_json(candidate.plan))}};
}

void run(Options& options, const Command& command) {
  SearchRequest request;
  request.optimizer = load(options.training, options.model);
  Model model = load(options.model);
  request.prices = prices_of(load(options.cluster), options.calibration);
  request.allow = options.allow;
  request.forbid = options.forbid;
  request.memory = least_memory(request.prices.cluster());
  auto start = std::chrono::steady_clock::now();
  SearchResult result = search(model, request);
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (result.fitting.empty())
    throw Infeasible(fmt::format("no plan fits {} per device on {}; {}", show_bytes(request.memory),
                                 request.prices.cluster().name, least_that_would_do(result)));
  PhaseLog log;
  lower_certified(model, result.fitting.front().plan, log);
  if (!options.output.empty()) write_file(options.output, to_json(result.fitting.front().plan));
  Json json = {{"plans", Json::array()},    {"lost", Json::array()},         {"refused", result.refused},
               {"search_seconds", seconds}, {"evaluated", result.evaluated}, {"pruned", 0}};
  write_tier(request.prices, json);
  for (size_t i = 0; i < std::min(options.top, result.fitting.size()); ++i)
    json["plans"].push_back(write(result.fitting[i], tokens_of(model)));
  for (const Candidate& lost : result.beyond)
    json["lost"].push_back(
        {{"summary", lost.plan.summary}, {"peak_bytes", lost.peak_bytes}, {"reason", lost.reason}});
  std::string written = options.output.empty() ? "" : fmt::format("written to {}\n", options.output);
  command.answer(json, table(result, request, options.top) + written);
}

}  // namespace

void add_plan(CLI::App& app, Command& command) {
  auto options = std::make_shared<Options>();
  add_model_input(app, options->model);
  add_cluster_input(app, options->cluster);
  add_training_input(app, options->training);
  add_calibration_flag(app, options->calibration);
  app.add_option("--top", options->top, "how many plans to list")->check(CLI::Range(1, 1000));
  app.add_option("--allow", options->allow,
                 "only these ways: dp,zero1,zero3,tp,pipeline,microbatches,recompute")
      ->delimiter(',')
      ->allow_extra_args(false);
  app.add_option("--forbid", options->forbid, "not these ways")->delimiter(',')->allow_extra_args(false);
  app.add_option("-o,--output", options->output, "write the best plan");
  app.footer("Example: partita plan gpt2.model.json --cluster 4xcpu --memory 2GiB -o plan.json");
  app.callback([options, &command] { run(*options, command); });
}

}  // namespace partita
