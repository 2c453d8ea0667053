#include "plan/plan.h"

#include <chrono>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "cli/checks.h"
#include "cli/ctrl_c.h"
#include "cli/headline.h"
#include "cli/inputs.h"
#include "cli/model_file.h"
#include "cli/plan_request.h"
#include "cli/pricing.h"
#include "cli/show_progress.h"
#include "cli/throughput.h"
#include "cli/training.h"
#include "cli/verbs.h"
#include "estimate/cost_book.h"
#include "measure/choose_by_run.h"
#include "model/rewrite/retype.h"
#include "search/batch_sweep.h"
#include "search/fault_report.h"
#include "search/least.h"
#include "search/objective.h"
#include "search/search.h"

namespace partita::cli {
namespace {

struct Options {
  ModelInput model;
  PlanRequestInput request;
  std::string batch, output, objective = "time";
  double slowdown = 0;
  int rounds = 0;  // in which plans are really run; 0: none is
  bool strict = false;
  std::string fault_dir = ".";
};

/// The model of a batch and the answer for it.
struct Found {
  Model model;
  SearchResult result;
};

std::string show_row(const Candidate& c, size_t width) {
  std::string proved = c.lowered && !c.certified ? ", simulated but not proved" : "";
  return fmt::format("{:<{}} {:>10} {:>12}  {}{}\n", c.plan.summary, width, show_seconds(c.step_seconds),
                     show_bytes(c.worst_peak()), c.reason, proved);
}

/// The answer, then what was lowered and simulated, then what is only estimated.
std::string table(const SearchResult& result) {
  size_t width = 36;
  for (const Candidate& candidate : result.fitting) width = std::max(width, candidate.plan.summary.size());
  std::string checked =
      fmt::format("{:<{}} {:>10} {:>12}  {}\n", "plan", width, "step", "peak/device", "why");
  std::string unchecked;
  for (const Candidate& c : result.fitting)
    (c.lowered || &c == &result.fitting.front() ? checked : unchecked) += show_row(c, width);
  if (unchecked.empty()) return checked;
  return checked + "not checked, estimated from block costs alone:\n" + unchecked;
}

std::string headline(const Found& found, const PlanRequest& request) {
  const Candidate& best = found.result.fitting.front();
  const Cluster& cluster = request.search.prices.cluster();
  std::string text = fmt::format("{}; global batch {} on {}; limit {} per device\n",
                                 show_dtype(best.plan.dtype, best.plan.optimizer), batch_of(found.model),
                                 cluster.name, to_text(request.limit));
  if (!best.lowered) text += "not checked: estimated only, not lowered or proved\n";
  return text + precision_hint(best.plan.dtype, cluster);
}

std::string to_text(const Found& found, const PlanRequest& request) {
  const SearchResult& result = found.result;
  const Candidate& best = result.fitting.front();
  const Cluster& cluster = request.search.prices.cluster();
  std::string text = headline(found, request) + table(result);
  Throughput throughput = ThroughputOf(found.model, cluster)(best.plan, best.step_seconds);
  text += fmt::format("The first: {}.\n", show(throughput));
  text += fmt::format(
      "{} of {} recipes estimated, {} left out by their bound, {} plans lowered and simulated on {}, {} per "
      "device.\n",
      result.evaluated, result.evaluated + result.pruned, result.pruned, result.lowered, cluster.name,
      show_bytes(request.limit.limit));
  if (result.interrupted) text += "Stopped early: the best so far.\n";
  if (result.interrupted && !result.certified)
    text += "It is not certified yet: partita lower and whatever runs it do that first.\n";
  return text + show_tier(request.search.prices);
}

constexpr double kSecondsPerHour = 3600;

/// `bound`: of what the objective counts.
Json write(const Candidate& candidate, int64_t tokens, Objective objective, double bound,
           const Throughput& throughput) {
  Seconds seconds = candidate.step_seconds;
  double cost = cost_of(objective, candidate), devices = static_cast<double>(candidate.peak_bytes.size());
  double proved = std::min(bound / cost, 1.0);
  Json json = {{"summary", candidate.plan.summary},
               {"step_seconds", seconds},
               {"estimated_seconds", candidate.estimated_seconds},
               {"peak_bytes", candidate.peak_bytes},
               {"fits", candidate.fits},
               {"dtype", candidate.plan.dtype},
               {"device_hours_per_token", seconds * devices / kSecondsPerHour / static_cast<double>(tokens)},
               {"bound_seconds", proved * seconds},
               {"gap", 1 - proved},
               {"lowered", candidate.lowered},
               {"checked", candidate.lowered && candidate.certified},
               {"bubble", candidate.bubble},
               {"exposed_comm_seconds", candidate.exposed_comm_seconds},
               {"reason", candidate.reason},
               {"plan", Json::parse(to_json(candidate.plan))}};
  write(throughput, json);
  if (candidate.measured_seconds > 0) json["measured_seconds"] = candidate.measured_seconds;
  return json;
}

constexpr const char* kCertified[] = {
    "seconds of a step by block costs, over the recipes looked at",
    "peak bytes of the worst device; nothing is proved",
    "device-seconds of a step by block costs, over the recipes and numbers of devices looked at"};

Json write(const Found& found, const PlanRequest& request, Objective objective, double seconds) {
  const auto& [model, result] = found;
  ThroughputOf throughput(model, request.search.prices.cluster());
  Json json = {{"plans", Json::array()},
               {"lost", Json::array()},
               {"refused", result.refused},
               {"left_out", result.faults.size()},
               {"objective", kCertified[static_cast<int>(objective)]},
               {"search_seconds", seconds},
               {"evaluated", result.evaluated},
               {"pruned", result.pruned},
               {"lowered", result.lowered},
               {"batch", batch_of(model)},
               {"dtype", parameter_dtype(model)},
               {"fits", !result.fitting.empty()},
               {"limit_bytes", request.limit.limit},
               {"reserve_bytes", request.limit.reserve}};
  write_tier(request.search.prices, json);
  if (result.interrupted) json["interrupted"] = true, json["certified"] = result.certified;
  for (const Candidate& c : result.fitting)
    json["plans"].push_back(
        write(c, tokens_of(model), objective, result.bound, throughput(c.plan, c.step_seconds)));
  if (const Candidate* best = result.fitting.empty() ? nullptr : &result.fitting.front())
    write(throughput(best->plan, best->step_seconds), json);
  for (const Candidate& lost : result.beyond)
    json["lost"].push_back(
        {{"summary", lost.plan.summary}, {"peak_bytes", lost.peak_bytes}, {"reason", lost.reason}});
  return json;
}

Model load_sized(const Options& options, int64_t batch, int64_t sequence) {
  ModelInput input = options.model;
  input.batch = batch;
  input.seq = sequence;
  return load(input);
}

Found find(const Options& options, Objective objective, const SearchRequest& request) {
  if (options.slowdown > 0 && objective != Objective::kMemory)
    input_error("--slowdown: is for --objective memory, and this one is {}", options.objective);
  if (options.batch != "auto") {
    Model model = load(options.model);
    SearchResult result = search_for(objective, options.slowdown, model, request);
    return {std::move(model), std::move(result)};
  }
  if (objective == Objective::kMemory)
    input_error("--batch auto: memory is least for the smallest batch; give the batch of a step");
  auto build = [&](int64_t batch) { return load_sized(options, batch, options.model.seq); };
  BatchSweep sweep = sweep_batches(build, request, objective);
  Interruptible not_now(nullptr);
  return {build(sweep.batch), std::move(sweep.result)};
}

Least least_or_interrupted(const Found& found, const SearchRequest& request, const BuildStep& build,
                           const std::string& nothing) {
  try {
    return least_that_would_do(found.model, request, found.result, build);
  } catch (const Interrupted&) {
    throw Interrupted(fmt::format("interrupted: {}; the least that would do was not found yet", nothing));
  }
}

/// What a search finds, unless it is interrupted before it finds anything.
Found find_some(const Options& options, Objective objective, const SearchRequest& request) {
  constexpr const char* kNothing = "interrupted: no plan was found yet";
  try {
    Interruptible scope(request.stop ? request.stop : interrupt_flag());
    Found found = find(options, objective, request);
    if (!found.result.interrupted || !found.result.fitting.empty()) return found;
  } catch (const Interrupted&) {
    throw Interrupted(kNothing);
  }
  throw Interrupted(kNothing);
}

/// On stderr, as whoever reads the answer of --json has them there.
std::vector<std::string> warn(const Model& model, const std::vector<PlanFault>& faults,
                              const Options& options, const Cluster& cluster, const Command& command) {
  std::vector<std::string> warnings =
      report_faults(faults, {model, cluster.name, PARTITA_VERSION, options.fault_dir});
  if (!command.quiet && !warnings.empty()) command.erase_progress();
  if (!command.quiet)
    for (const std::string& line : warnings) fmt::print(stderr, "warning: {}\n", line);
  return warnings;
}

/// Where faults are all there is, they are a Bug.
void need_some(const SearchResult& result) {
  if (!result.fitting.empty() || !result.beyond.empty() || result.faults.empty()) return;
  throw Bug(fmt::format("every plan that was tried fails: {}", result.faults.front().message));
}

void refuse(const Found& found, const Options& options, const PlanRequest& plan, const Command& command,
            Json json) {
  const SearchRequest& request = plan.search;
  BuildStep build = [&](int64_t batch, int64_t sequence) { return load_sized(options, batch, sequence); };
  if (!is_built(options.model)) build = nullptr;
  std::string nothing = fmt::format("no plan fits {} per device on {} in {}", to_text(plan.limit),
                                    request.prices.cluster().name, parameter_dtype(found.model));
  Least least = least_or_interrupted(found, request, build, nothing);
  for (std::string& line : warn(found.model, least.faults, options, request.prices.cluster(), command))
    json["warnings"].push_back(std::move(line));
  json["left_out"] = found.result.faults.size() + least.faults.size();
  json["least_memory"] = json["least_memory_bytes"] = least.memory;
  json["least_devices"] = least.devices;
  json["least_nodes"] = least.nodes;
  json["largest_batch"] = least.batch;
  json["largest_seq"] = least.sequence;
  if (command.json) command.answer(json, "");
  throw Infeasible(fmt::format("{}; {}", nothing, least.text));
}

void run(Options& options, const Command& command) {
  PlanRequest plan = load(options.request, options.model);
  SearchRequest& request = plan.search;
  request.strict = options.strict;
  read_batch(options.batch, options.model);
  Objective objective = parse_objective(options.objective);
  if (options.rounds > 0 && objective != Objective::kTime)
    input_error("--measure: takes the plan of least time, and --objective is {}; leave one of them out",
                options.objective);
  if (options.rounds > 0) check_can_run(request);
  request.finely = options.rounds > 0;
  std::optional<CtrlC> ctrl_c;
  if (!command.question()) request.stop = ctrl_c.emplace().flag();
  request.progress = show_progress(command);
  auto start = std::chrono::steady_clock::now();
  Found found = find_some(options, objective, request);
  if (command.question()) check_interrupt();  // whoever asked within a process waits for nothing then
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!found.result.fitting.empty()) ctrl_c.reset();  // nothing is left that could be given before its end
  if (options.rounds > 0 && !found.result.interrupted) {
    HostTensors constants = load_constants(options.model, found.model);
    choose_by_run(
        found.model, views_of(constants), options.rounds,
        [&](const std::string& name) { command.say("running", name); }, found.result);
  }
  Json json = write(found, plan, objective, seconds);
  json["warnings"] = warn(found.model, found.result.faults, options, request.prices.cluster(), command);
  need_some(found.result);
  if (found.result.fitting.empty()) refuse(found, options, plan, command, std::move(json));
  const Candidate& best = found.result.fitting.front();
  if (!options.output.empty()) write_file(options.output, to_json(best.plan));
  std::string written = options.output.empty() ? "" : fmt::format("written to {}\n", options.output);
  if (options.batch == "auto")
    written = fmt::format("batch {}: {:.6g} tokens a second\n", batch_of(found.model),
                          static_cast<double>(tokens_of(found.model)) / best.step_seconds) +
              written;
  command.answer(json, to_text(found, plan) + written);
}

}  // namespace

void add_plan(CLI::App& app, Command& command) {
  auto options = std::make_shared<Options>();
  add_model_input(app, options->model, command);
  app.remove_option(app.get_option("--batch"));
  app.add_option("--batch", options->batch, "global batch size; auto: the one with most tokens per second");
  add_plan_request(app, options->request);
  app.add_option("--objective", options->objective,
                 "what to minimize: time of a step; memory of the worst device; device-hours per token, "
                 "which may leave devices idle")
      ->capture_default_str();
  app.add_option("--slowdown", options->slowdown,
                 "with --objective memory: at most so many times as long as the fastest plan")
      ->check(number(1, 1e6));
  app.add_option("--measure", options->rounds,
                 "on this CPU: run the plans found in this many rounds, and take the fastest")
      ->check(whole_number(1, 1000));
  app.add_flag("--strict", options->strict,
               "a plan that fails a check of partita's own is exit 70; without it, it is left out with a "
               "warning, and the next best is given");
  app.add_option("--fault-dir", options->fault_dir,
                 "folder for the bug report files of plans that were left out")
      ->capture_default_str();
  app.add_option("-o,--output", options->output, "write the best plan");
  app.footer(
      "Example: partita plan gpt2-small --cluster 8xA100-80GB --memory 8GiB -o plan.json\n"
      "Example: partita plan llama-3-8b --cluster 2x8xH100-80GB --batch 64 --seq 4096 "
      "--precision bf16 -o plan.json");
  app.callback([options, &command] { run(*options, command); });
}

}  // namespace partita::cli
