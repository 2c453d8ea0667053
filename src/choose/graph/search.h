#pragma once

#include "choose/graph/answer.h"

namespace partita::choose {

/// The choice of fewest seconds within the capacities. Options that others replace are dropped, the graph is
/// eliminated exactly (or bounded), capacities are priced by multipliers, and what a gap leaves open is
/// decided by branch and bound. Deterministic. REQUIRES: check(graph) is empty; at most kMaxMoments
/// capacities.
StrategyAnswer search_strategies(const StrategyGraph& graph, const StrategyLimits& limits = {});

}  // namespace partita::choose
