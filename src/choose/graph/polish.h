#pragma once

#include "choose/graph/graph.h"

namespace partita::choose {

/// Changes one node at a time, or two that an edge joins, while that saves seconds and stays within the
/// capacities. REQUIRES: fits(graph, choice).
StrategyChoice polish(const StrategyGraph& graph, StrategyChoice choice);

}  // namespace partita::choose
