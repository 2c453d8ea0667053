#pragma once

#include <optional>

#include "strategy/graph.h"

namespace partita {

struct StrategyLimits {
  int64_t work = 400'000'000;        // numbers added up before the search settles for what it has
  int64_t table = int64_t{1} << 22;  // numbers in one table; beyond, bounds instead of exact tables
};

struct StrategyAnswer {
  std::optional<StrategyChoice>
      best;                        // nothing: no choice is allowed and fits, or (not proved) none was found
  bool proved = false;             // false: the work ran out, something better may exist
  Seconds bound = 0;               // no choice takes less; equal to best->seconds where proved
  std::vector<double> multiplier;  // by resource: seconds that one byte more would save, at the margin
  int64_t branches = 0, work = 0;
  int64_t largest_table = 0;

  /// (seconds - bound) / seconds.
  double gap() const;
};

/// The choice of fewest seconds within the capacities. Options that others replace are dropped, the graph is
/// eliminated exactly (or bounded), capacities are priced by multipliers, and what a gap leaves open is
/// decided by branch and bound. Deterministic. REQUIRES: check(graph) is empty; at most kMaxMoments
/// capacities.
StrategyAnswer search_strategies(const StrategyGraph& graph, const StrategyLimits& limits = {});

}  // namespace partita
