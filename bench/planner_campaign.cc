// planner_campaign budgets MODEL CLUSTER [BATCH]: plans for ten memory limits against every recipe that fits.
// planner_campaign agree MODEL CLUSTER [BATCH]: estimates against the lowered and simulated plan.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "cluster/library.h"
#include "lower/lower.h"
#include "model/build/build.h"
#include "search/recipes.h"
#include "search/write_plan.h"
#include "simulate/simulate.h"

namespace partita {
namespace {

constexpr int kBudgets = 10;

struct Known {
  Seconds seconds = 0;
  Bytes peak = 0;
  std::string summary;
};

Known simulated(const Model& model, const Plan& plan, const Prices& prices) {
  Lowered lowered = lower(model, plan);
  Trace trace = simulate(lowered.model, lowered.program, prices);
  return {trace.step_seconds, *std::max_element(trace.peak_bytes.begin(), trace.peak_bytes.end()),
          plan.summary};
}

/// Recipes with everything stored alike, with and without recomputation.
std::vector<Known> all_simulated(const Model& model, const Prices& prices) {
  std::vector<Known> out;
  RecipeBook book(model);
  SearchRequest request{.prices = prices};
  for (RecipeSpec spec : all_recipes(request, batch_of(model), 64))
    for (int zero : {0, 1, 2, 3})
      for (bool recompute : {false, true}) {
        if (zero && spec.dp == 1) continue;
        spec.zero = zero;
        spec.recompute = recompute;
        try {
          out.push_back(simulated(model, book.plan(spec), prices));
        } catch (const InputError&) {
          continue;  // does not apply to this model
        }
      }
  return out;
}

int budgets(const Model& model, const Prices& prices) {
  std::vector<Known> recipes = all_simulated(model, prices);
  Bytes least = recipes.front().peak, most = 0;
  for (const Known& recipe : recipes)
    least = std::min(least, recipe.peak), most = std::max(most, recipe.peak);
  int wrong = 0;
  Seconds before = HUGE_VAL;
  fmt::print("{} on {}, {} recipes\n", model.name, prices.cluster().name, recipes.size());
  for (int k = 0; k < kBudgets; ++k) {
    double share = static_cast<double>(k) / (kBudgets - 1);
    Bytes memory = static_cast<Bytes>(
        static_cast<double>(least) * std::pow(static_cast<double>(most) / static_cast<double>(least), share));
    SearchResult result = search(model, {.prices = prices, .memory = memory});
    const Known* best = nullptr;
    for (const Known& recipe : recipes)
      if (recipe.peak <= memory && (!best || recipe.seconds < best->seconds)) best = &recipe;
    if (result.fitting.empty()) {
      fmt::print("{:>10}  nothing; best recipe {}\n", show_bytes(memory), best ? best->summary : "none");
      wrong += best != nullptr;
      continue;
    }
    const Candidate& mine = result.fitting.front();
    bool over = mine.worst_peak() > memory, falls = mine.step_seconds > before * (1 + 1e-9);
    bool slower = best && mine.step_seconds > best->seconds * (1 + 1e-9);
    wrong += over || falls || slower;
    before = std::min(before, mine.step_seconds);
    fmt::print("{:>10}  {:>10} {:>10}  {}{}{}{}  (best recipe {} {})\n", show_bytes(memory),
               show_seconds(mine.step_seconds), show_bytes(mine.worst_peak()), mine.plan.summary,
               over ? " OVER" : "", falls ? " SLOWER THAN WITH LESS MEMORY" : "", slower ? " SLOWER" : "",
               best ? show_seconds(best->seconds) : "", best ? best->summary : "none");
  }
  fmt::print("{} wrong\n", wrong);
  return wrong ? 1 : 0;
}

int agree(const Model& model, const Prices& prices) {
  CostBook book(model, prices, {});
  Estimator estimator(book);
  double slowest = 0, fastest = 2, least = 2, most = 0;
  int count = 0;
  SearchRequest request{.prices = prices};
  int units = book.shrunk().units.in_line ? static_cast<int>(book.shrunk().stands_for.size()) : 1;
  for (const RecipeSpec& spec : all_recipes(request, book.batch(), units)) {
    book.measure({book.key_of(spec)});
    for (Bytes memory : {Bytes{1} << 50, Bytes{1}}) {
      Estimate estimate = estimator.estimate(spec, {.memory = memory});
      if (!estimate.refused.empty()) continue;
      Known real = simulated(model, write_plan(book, estimate), prices);
      double seconds = estimate.seconds / real.seconds;
      double bytes = static_cast<double>(estimate.worst_peak()) / static_cast<double>(real.peak);
      slowest = std::max(slowest, seconds), fastest = std::min(fastest, seconds);
      most = std::max(most, bytes), least = std::min(least, bytes);
      ++count;
      if (std::abs(seconds - 1) > 0.05 || bytes < 0.99 || bytes > 1.1)
        fmt::print("{:<60} seconds {:.3f} bytes {:.3f}\n", real.summary, seconds, bytes);
    }
  }
  fmt::print("{} on {}: {} plans, seconds {:.3f} to {:.3f}, bytes {:.3f} to {:.3f} of the lowered plan's\n",
             model.name, prices.cluster().name, count, fastest, slowest, least, most);
  return 0;
}

int run(int argc, char** argv) {
  if (argc < 4) input_error("planner_campaign budgets/agree MODEL CLUSTER [BATCH]");
  const Preset* preset = find_preset(argv[2]);
  if (!preset) input_error("{}: no preset of this name", argv[2]);
  Model model = build_model(*preset, {argc > 4 ? std::atoll(argv[4]) : 0, 0});
  Prices prices(read_cluster(argv[3]));
  return std::string_view(argv[1]) == "agree" ? agree(model, prices) : budgets(model, prices);
}

}  // namespace
}  // namespace partita

int main(int argc, char** argv) {
  try {
    return partita::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
