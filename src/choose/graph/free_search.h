#pragma once

#include "choose/graph/answer.h"

namespace partita::choose {

/// As search_strategies, for a graph without capacities. It is contracted, bounded by messages, narrowed to
/// the options that can still win, and contracted again, until what is left is small enough to eliminate.
/// `known`: a choice to beat, if there is one.
StrategyAnswer search_free(const StrategyGraph& graph, const StrategyLimits& limits,
                           const std::optional<StrategyChoice>& known = std::nullopt);

}  // namespace partita::choose
