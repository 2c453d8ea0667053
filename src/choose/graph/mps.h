#pragma once

#include <string>

#include "choose/graph/graph.h"

namespace partita::choose {

/// The problem as a mixed-integer program in free MPS form, for any solver: x<v>_<k> = 1 where node v takes
/// option k, y<e>_<k>_<l> = 1 where edge e joins options k and l; rows n<v> (one option a node), a<e>_<k> and
/// b<e>_<l> (edges agree with their nodes), r<m> (capacities). REQUIRES: check(graph) is empty.
std::string to_mps(const StrategyGraph& graph);

}  // namespace partita::choose
