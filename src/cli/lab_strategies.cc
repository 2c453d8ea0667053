#include <algorithm>
#include <charconv>
#include <ctime>
#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "choose/graph/mps.h"
#include "cli/checks.h"
#include "cli/inputs.h"
#include "cli/lab.h"
#include "cli/pricing.h"
#include "cli/training.h"
#include "lower/lower.h"
#include "model/rewrite/retype.h"
#include "plan/recipes/recipe.h"
#include "program/memory.h"
#include "search/mesh/mesh_plan.h"

namespace partita::cli {
namespace {

constexpr int64_t kMostAxes = 3;
constexpr int kMostRounds = 6;

struct StrategiesFlags {
  ModelInput model;
  ClusterInput cluster;
  TrainingInput training;
  std::string mesh, calibration, mps, output;
  bool free_layers = false;
  int effort = 3;
};

// Time of this process alone: a busy machine is not a slow search.
double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

std::vector<int64_t> parse_mesh(const std::string& text, const Cluster& cluster) {
  std::vector<int64_t> sizes;
  int64_t devices = 1;
  const char *at = text.data(), *end = at + text.size();
  for (bool more = true; more;) {
    int64_t size = 0;
    auto [next, error] = std::from_chars(at, end, size);
    if (error != std::errc() || size < 1 || size > 1 << 20 || (next < end && *next != 'x'))
      input_error("--mesh {}: needs sizes of axes, outermost first, as 8 or 2x4", text);
    sizes.push_back(size);
    devices *= size;
    more = next < end;
    at = next + 1;
  }
  if (static_cast<int64_t>(sizes.size()) > kMostAxes)
    input_error("--mesh {}: has {} axes, at most {} are searched", text, sizes.size(), kMostAxes);
  if (devices != num_ranks(cluster))
    input_error("--mesh {}: has {} devices, {} has {}; try --mesh {}", text, devices, cluster.name,
                num_ranks(cluster), num_ranks(cluster));
  return sizes;
}

/// Seconds of the search, part by part.
struct Spent {
  double load = 0, fold = 0, atoms = 0, graph = 0, solve = 0, plan = 0;
  double all() const { return fold + atoms + graph + solve + plan; }
};

/// What the search made, beside the plan.
struct Searched {
  FoldedStep step;
  Atoms atoms;
  MeshProblem problem;
  StrategyAnswer answer;
  Spent spent;
  Bytes peak = 0;  // of the lowered program, where memory is limited

  std::string objective() const {
    return fmt::format(
        "seconds of the largest shard of every op and of all conversions, one after another; {}{}",
        step.folded ? "equal layers alike but for the first" : "every layer free",
        problem.axis_sizes.size() > 3 ? "; no op does three different things" : "");
  }
  size_t options() const {
    size_t options = 0;
    for (const StrategyNode& node : problem.graph.nodes) options += node.seconds.size();
    return options;
  }
};

/// Rules of one axis.
std::string shown_axis(const MeshAxis& axis, const Plan& plan) {
  int64_t splits = std::count_if(plan.split.begin(), plan.split.end(), [&](const SplitRule& rule) {
    return rule.axis == axis.name && rule.as != "whole";
  });
  int64_t cuts = std::count_if(plan.store.begin(), plan.store.end(),
                               [&](const StoreRule& rule) { return rule.axis == axis.name; });
  return fmt::format("axis {} of {:<4} {} rules split ops, {} shard parameters\n", axis.name, axis.size,
                     splits, cuts);
}

std::string to_text(const Searched& found, const Plan& plan) {
  const StrategyAnswer& answer = found.answer;
  const Spent& spent = found.spent;
  std::string text = fmt::format("seconds   {:.6g}, no choice takes less than {:.6g}; gap {:.2g}\n",
                                 answer.best->seconds, answer.bound, answer.gap());
  text += fmt::format("these are {}\n", found.objective());
  if (!answer.best->bytes.empty())
    text += fmt::format("bytes     {} of {} when forward ends; the lowered plan's peak is {}\n",
                        show_bytes(answer.best->bytes[0]), show_bytes(found.problem.graph.capacity[0]),
                        show_bytes(found.peak));
  for (const MeshAxis& axis : plan.mesh) text += shown_axis(axis, plan);
  text += fmt::format("searched  {} of {} ops, {} options\n", found.step.model.ops.size(),
                      found.step.whole.ops.size(), found.options());
  return text +
         fmt::format(
             "CPU time  load {:.3f} s; fold {:.3f}, atoms {:.3f}, graph {:.3f}, solve {:.3f}, plan {:.3f}: "
             "{:.3f} s\n",
             spent.load, spent.fold, spent.atoms, spent.graph, spent.solve, spent.plan, spent.all());
}

Json to_json(const Searched& found) {
  const StrategyAnswer& answer = found.answer;
  const Spent& spent = found.spent;
  Json json{{"seconds", answer.best->seconds},
            {"objective", found.objective()},
            {"bound", answer.bound},
            {"gap", answer.gap()},
            {"proved", answer.proved},
            {"folded", found.step.folded},
            {"ops", found.step.whole.ops.size()},
            {"ops_searched", found.step.model.ops.size()},
            {"nodes", found.problem.graph.nodes.size()},
            {"options", found.options()},
            {"work", answer.work},
            {"load_seconds", spent.load},
            {"build_seconds", spent.fold + spent.atoms + spent.graph},
            {"solve_seconds", spent.solve},
            {"plan_seconds", spent.plan},
            {"search_seconds", spent.all()}};
  if (answer.best->bytes.empty()) return json;
  json["bytes"] = answer.best->bytes[0];
  json["capacity"] = found.problem.graph.capacity[0];
  json["peak_bytes"] = found.peak;
  json["seconds_per_gib"] = answer.multiplier[0] * 0x1p30;
  return json;
}

[[noreturn]] void nothing_fits(const MeshProblem& problem, bool proved) {
  Bytes bytes = 0;
  for (const StrategyNode& node : problem.graph.nodes) {
    Bytes fewest = INT64_MAX;
    for (const std::vector<Bytes>& option : node.bytes) fewest = std::min(fewest, option[0]);
    bytes += fewest;
  }
  throw Infeasible(fmt::format("{} hold no choice{}; every choice holds at least {} when forward ends",
                               show_bytes(problem.graph.capacity[0]), proved ? "" : " that was found",
                               show_bytes(bytes)));
}

/// The third effort is the library's own; each has eight times the work.
StrategyLimits limits_of(int effort) {
  StrategyLimits limits;
  for (int step = 3; step < effort; ++step) limits.work *= 8;
  for (int step = 3; step > effort; --step) limits.work /= 8;
  return limits;
}

Searched search(const StrategiesFlags& flags, const Model& model, const Prices& prices,
                const MeshRequest& request) {
  Searched found;
  double now = cpu_seconds();
  auto lap = [&now](double& to) {
    double then = now;
    to = (now = cpu_seconds()) - then;
  };
  found.step = fold_step(model, flags.free_layers);
  lap(found.spent.fold);
  found.atoms = find_atoms(found.step.model);
  lap(found.spent.atoms);
  found.problem = mesh_problem(found.step, found.atoms, prices, request);
  lap(found.spent.graph);
  found.answer = search_strategies(found.problem.graph, limits_of(flags.effort));
  lap(found.spent.solve);
  return found;
}

/// `head`: what the plan says besides.
Plan plan_of(Searched& found, const Model& model, const Plan& head) {
  double start = cpu_seconds();
  Plan plan = write_mesh_plan(found.step, found.atoms, found.problem, *found.answer.best);
  plan.cluster = head.cluster;
  plan.memory = head.memory;
  plan.optimizer = head.optimizer;
  plan.summary = head.summary;
  plan.model = fingerprint(model);
  std::string batch = batch_atom(found.step.model, found.atoms);
  if (!batch.empty())
    plan.batch = found.atoms.sizes[find_atom(found.step.model, found.atoms, batch, "batch").value];
  plan.dtype = parameter_dtype(model);
  found.spent.plan += cpu_seconds() - start;
  return plan;
}

/// Bytes of the device that holds most, of the lowered program.
Bytes counted_peak(const Prepared& prepared, const Plan& plan) {
  FoldedProgram folded = lower_folded(prepared, plan);
  Bytes most = 0;
  for (const RankMemory& rank : memory_of(prepared.model, folded.program)) most = std::max(most, rank.peak);
  return most;
}

// The end of forward is one moment of many. What the lowered program holds over it at its peak is taken off
// the capacity, and the search is repeated.
Plan fit(Searched& found, const StrategiesFlags& flags, const Model& model, const Plan& head) {
  Bytes limit = found.problem.graph.capacity[0];
  std::optional<Prepared> prepared;
  for (int round = 0; round < kMostRounds; ++round) {
    if (!found.answer.best && round == 0) nothing_fits(found.problem, found.answer.proved);
    if (!found.answer.best) break;
    Plan plan = plan_of(found, model, head);
    if (!prepared) prepared = prepare(model, form_of(plan));
    found.peak = counted_peak(*prepared, plan);
    if (found.peak <= limit) return plan;
    Bytes& capacity = found.problem.graph.capacity[0];
    capacity = std::min(capacity, found.answer.best->bytes[0]) - (found.peak - limit);
    if (capacity < 0) break;
    double start = cpu_seconds();
    found.answer = search_strategies(found.problem.graph, limits_of(flags.effort));
    found.spent.solve += cpu_seconds() - start;
  }
  throw Infeasible(fmt::format("{}: no plan was found whose peak is within it; the last one needs {}",
                               show_bytes(limit), show_bytes(found.peak)));
}

void run(StrategiesFlags& flags, const Command& command) {
  Cluster cluster = load(flags.cluster);
  OptimizerSpec optimizer = load(flags.training, flags.model);
  MeshRequest request{
      .mesh = parse_mesh(flags.mesh, cluster),
      .upkeep = {
          .optimizer = optimizer, .grad = optimizer.precision.grad, .master = optimizer.precision.master}};
  bool limited = !flags.cluster.memory.empty() || !flags.cluster.reserve.empty();
  if (limited) request.memory = limit_of(flags.cluster, cluster).limit;
  Prices prices = prices_of(cluster, flags.calibration);
  double start = cpu_seconds();
  Model model = load(flags.model);
  double loaded = cpu_seconds();
  Searched found = search(flags, model, prices, request);
  found.spent.load = loaded - start;
  if (!flags.mps.empty()) write_file(flags.mps, to_mps(found.problem.graph));
  Plan head{.cluster = cluster.name, .memory = request.memory};
  head.optimizer = optimizer;
  head.summary = fmt::format("strategies on {}", flags.mesh);
  Plan plan = request.memory ? fit(found, flags, model, head) : plan_of(found, model, head);
  std::string text = to_json(plan);
  if (!flags.output.empty()) write_file(flags.output, text);
  Json json = to_json(found);
  json["mesh"] = request.mesh;
  json["plan"] = Json::parse(text);
  write_tier(prices, json);
  command.answer(json, to_text(found, plan) + show_tier(prices));
}

}  // namespace

void add_lab_strategies(CLI::App& app, Command& command) {
  auto flags = std::make_shared<StrategiesFlags>();
  add_model_input(app, flags->model, command);
  add_cluster_input(app, flags->cluster);
  app.add_option("--mesh", flags->mesh,
                 "sizes of the axes that the devices form, outermost first: 8, 2x4, 4x4x4")
      ->required();
  app.add_flag("--free-layers", flags->free_layers,
               "equal layers may differ; without it all but the first take the same options");
  app.add_option("--effort", flags->effort,
                 "1 to 5, each eight times the work where a proof is hard; default 3")
      ->check(whole_number(1, 5));
  add_training_input(app, flags->training);
  add_calibration_flag(app, flags->calibration);
  app.add_option("--mps", flags->mps, "write the problem here, for any other solver");
  app.add_option("-o,--output", flags->output, "write the plan here");
  app.footer(
      "Example: partita lab strategies llama-3-8b --batch 64 --cluster 8x8xH100-80GB --mesh 8x8 -o "
      "plan.json");
  app.callback([flags, &command] { run(*flags, command); });
}

}  // namespace partita::cli
