#pragma once

#include "strategy/graph.h"

namespace partita {

/// Changes one node at a time, or two that an edge joins, while that saves seconds and stays within the
/// capacities. Edges must run from the lower node to the higher. REQUIRES: fits(graph, choice).
StrategyChoice polish(const StrategyGraph& graph, StrategyChoice choice);

}  // namespace partita
