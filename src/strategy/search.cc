#include "strategy/search.h"

#include <algorithm>

#include "base/error.h"
#include "strategy/branch.h"
#include "strategy/free_search.h"
#include "strategy/reduce.h"

namespace partita {

double StrategyAnswer::gap() const {
  return best && best->seconds > 0 ? (best->seconds - bound) / best->seconds : 0;
}

StrategyAnswer search_strategies(const StrategyGraph& graph, const StrategyLimits& limits) {
  if (graph.capacity.empty()) return search_free(graph, limits);
  Reduced reduced = reduce(graph);
  StrategyAnswer answer = branch_and_bound(reduced.graph, limits);
  if (!answer.best) return answer;
  answer.best = measure(graph, restore(reduced, answer.best->option));
  CHECK(fits(graph, *answer.best));
  // Added up in another order: equal up to rounding.
  answer.bound = answer.proved ? answer.best->seconds : std::min(answer.bound, answer.best->seconds);
  return answer;
}

}  // namespace partita
