#pragma once

#include "choose/graph/graph.h"

namespace partita::choose {

/// A graph with fewer options; `kept[v][k]` is the number that option k of node v has in the original.
struct Reduced {
  StrategyGraph graph;
  std::vector<std::vector<int32_t>> kept;
};

/// Drops options that another option of the node replaces at no loss, whatever its neighbours take, and
/// merges edges between the same nodes. Some best choice is left.
Reduced reduce(const StrategyGraph& graph);

/// The graph with these options of every node only.
StrategyGraph keep_only(const StrategyGraph& graph, const std::vector<std::vector<int32_t>>& kept);

/// The option numbers of the original graph.
std::vector<int32_t> restore(const Reduced& reduced, const std::vector<int32_t>& option);

}  // namespace partita::choose
