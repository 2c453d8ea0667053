#pragma once

#include "choose/graph/answer.h"

namespace partita::choose {

/// The choice of fewest seconds within the capacities, by elimination of the whole graph for every price of
/// its bytes, and branches where that leaves a gap. For graphs whose tables are small. Deterministic.
/// REQUIRES: as search_strategies; edges run from the lower node to the higher.
StrategyAnswer branch_and_bound(const StrategyGraph& graph, const StrategyLimits& limits);

}  // namespace partita::choose
