#include "choose/graph/search.h"

#include <algorithm>

#include "base/error.h"
#include "choose/graph/branch.h"
#include "choose/graph/elimination.h"
#include "choose/graph/free_search.h"
#include "choose/graph/priced_search.h"
#include "choose/graph/reduce.h"

namespace partita::choose {
namespace {

constexpr int64_t kPlainWork = 20'000'000;  // numbers in all tables: as many prices as it takes
constexpr size_t kFewNodes = 64;            // branches decide them

/// The best choice of all, where it is within the capacities.
std::optional<StrategyAnswer> search_unlimited(const StrategyGraph& graph, const StrategyLimits& limits) {
  StrategyGraph unlimited = graph;
  unlimited.capacity.clear();
  for (StrategyNode& node : unlimited.nodes) node.bytes.clear();
  StrategyAnswer answer = search_free(unlimited, limits);
  if (!answer.best || !answer.proved) return std::nullopt;
  answer.best = measure(graph, answer.best->option);
  answer.multiplier.assign(graph.capacity.size(), 0.0);
  return fits(graph, *answer.best) ? std::optional(std::move(answer)) : std::nullopt;
}

}  // namespace

StrategyAnswer search_strategies(const StrategyGraph& graph, const StrategyLimits& limits) {
  if (graph.capacity.empty()) return search_free(graph, limits);
  if (auto best_of_all = search_unlimited(graph, limits)) return *std::move(best_of_all);
  Reduced reduced = reduce(graph);
  Elimination elimination(reduced.graph, limits.table);
  bool small = elimination.exact() && elimination.work() <= kPlainWork;
  if (!small && graph.nodes.size() > kFewNodes) return search_priced(graph, limits);
  StrategyAnswer answer = branch_and_bound(reduced.graph, limits);
  if (!answer.best) return answer;
  answer.best = measure(graph, restore(reduced, answer.best->option));
  CHECK(fits(graph, *answer.best));
  // Added up in another order: equal up to rounding.
  answer.bound = answer.proved ? answer.best->seconds : std::min(answer.bound, answer.best->seconds);
  return answer;
}

}  // namespace partita::choose
