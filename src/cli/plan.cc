#include "plan/plan.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>

#include "base/error.h"
#include "cli/inputs.h"
#include "cli/plan_request.h"
#include "cli/pricing.h"
#include "cli/training.h"
#include "cli/verbs.h"
#include "search/batch_sweep.h"
#include "search/cost_book.h"
#include "search/least.h"
#include "search/search.h"

namespace partita {
namespace {

struct Options {
  ModelInput model;
  PlanRequestInput request;
  std::string batch, output;
};

/// Set by Ctrl-C: the search gives what it has. A signal handler reaches nothing but what is static.
std::atomic<bool>& interrupted() {
  static std::atomic<bool> flag = false;
  return flag;
}

std::string table(const SearchResult& result, const SearchRequest& request) {
  size_t width = 36;
  for (const Candidate& candidate : result.fitting) width = std::max(width, candidate.plan.summary.size());
  std::string text = fmt::format("{:<{}} {:>10} {:>12}  {}\n", "plan", width, "step", "peak/device", "why");
  for (const Candidate& c : result.fitting)
    text += fmt::format("{:<{}} {:>10} {:>12}  {}{}\n", c.plan.summary, width, show_seconds(c.step_seconds),
                        show_bytes(c.worst_peak()), c.reason, c.lowered ? "" : " (estimated)");
  text += fmt::format(
      "{} of {} recipes estimated, {} left out by their bound, {} plans lowered and simulated on {}, {} per "
      "device.\n",
      result.evaluated, result.evaluated + result.pruned, result.pruned, result.lowered,
      request.prices.cluster().name, show_bytes(request.memory));
  if (result.interrupted) text += "Stopped early: the best so far.\n";
  return text + show_tier(request.prices);
}

Json write(const Candidate& candidate, int64_t tokens, Seconds bound) {
  Seconds seconds = candidate.step_seconds;
  return {{"summary", candidate.plan.summary},
          {"step_seconds", seconds},
          {"estimated_seconds", candidate.estimated_seconds},
          {"tokens_per_second", static_cast<double>(tokens) / seconds},
          {"peak_bytes", candidate.peak_bytes},
          {"bound_seconds", std::min(bound, seconds)},
          {"gap", std::max(0.0, 1 - bound / seconds)},
          {"lowered", candidate.lowered},
          {"bubble", candidate.bubble},
          {"exposed_comm_seconds", candidate.exposed_comm_seconds},
          {"reason", candidate.reason},
          {"plan", Json::parse(to_json(candidate.plan))}};
}

Json write(const SearchResult& result, const SearchRequest& request, const Model& model, double seconds) {
  Json json = {{"plans", Json::array()},
               {"lost", Json::array()},
               {"refused", result.refused},
               {"objective", "seconds of a step by costs of units, over the recipes looked at"},
               {"search_seconds", seconds},
               {"evaluated", result.evaluated},
               {"pruned", result.pruned},
               {"lowered", result.lowered},
               {"batch", batch_of(model)}};
  write_tier(request.prices, json);
  for (const Candidate& candidate : result.fitting)
    json["plans"].push_back(write(candidate, tokens_of(model), result.bound));
  for (const Candidate& lost : result.beyond)
    json["lost"].push_back(
        {{"summary", lost.plan.summary}, {"peak_bytes", lost.peak_bytes}, {"reason", lost.reason}});
  return json;
}

/// The model of a batch and the answer for it.
struct Found {
  Model model;
  SearchResult result;
};

Found find(const Options& options, const SearchRequest& request) {
  if (options.batch != "auto") {
    Model model = load(options.model);
    SearchResult result = search(model, request);
    return {std::move(model), std::move(result)};
  }
  auto build = [&](int64_t batch) {
    ModelInput input = options.model;
    input.batch = batch;
    return load(input);
  };
  BatchSweep sweep = sweep_batches(build, request);
  return {build(sweep.batch), std::move(sweep.result)};
}

void refuse(const Found& found, const SearchRequest& request, const Command& command, Json json) {
  Least least = least_that_would_do(found.model, request, found.result);
  json["least_memory"] = least.memory;
  json["least_devices"] = least.devices;
  if (command.json) command.answer(json, "");
  throw Infeasible(fmt::format("no plan fits {} per device on {}; {}", show_bytes(request.memory),
                               request.prices.cluster().name, least.text));
}

void run(Options& options, const Command& command) {
  SearchRequest request = load(options.request, options.model);
  read_batch(options.batch, options.model);
  std::signal(SIGINT, [](int) { interrupted() = true; });
  request.stop = &interrupted();
  request.progress = [&](const Progress& p) {
    command.say(fmt::format("{} of {} recipes, best {}, bound {}", p.done, p.all,
                            p.incumbent > 0 ? show_seconds(p.incumbent) : "none yet", show_seconds(p.bound)));
  };
  auto start = std::chrono::steady_clock::now();
  Found found = find(options, request);
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  Json json = write(found.result, request, found.model, seconds);
  if (found.result.fitting.empty()) refuse(found, request, command, std::move(json));
  const Candidate& best = found.result.fitting.front();
  if (!options.output.empty()) write_file(options.output, to_json(best.plan));
  std::string written = options.output.empty() ? "" : fmt::format("written to {}\n", options.output);
  if (options.batch == "auto")
    written = fmt::format("batch {}: {:.6g} tokens a second\n", batch_of(found.model),
                          static_cast<double>(tokens_of(found.model)) / best.step_seconds) +
              written;
  command.answer(json, table(found.result, request) + written);
}

}  // namespace

void add_plan(CLI::App& app, Command& command) {
  auto options = std::make_shared<Options>();
  add_model_input(app, options->model);
  app.remove_option(app.get_option("--batch"));
  app.add_option("--batch", options->batch, "the global batch; auto: the one with most tokens a second");
  add_plan_request(app, options->request);
  app.add_option("-o,--output", options->output, "write the best plan");
  app.footer("Example: partita plan gpt2-small --cluster 8xA100-80GB --memory 8GiB -o plan.json");
  app.callback([options, &command] { run(*options, command); });
}

}  // namespace partita
