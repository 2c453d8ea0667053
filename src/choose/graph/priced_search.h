#pragma once

#include "choose/graph/answer.h"

namespace partita::choose {

/// As search_strategies, for a graph with capacities whose tables are large: every byte has a price, the
/// graph with prices has no capacities, and the best prices give the bound. The best choice met that fits is
/// polished; what gap is left stays. REQUIRES: at least one capacity.
StrategyAnswer search_priced(const StrategyGraph& graph, const StrategyLimits& limits);

}  // namespace partita::choose
