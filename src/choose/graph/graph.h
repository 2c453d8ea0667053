#pragma once

#include <string>
#include <vector>

#include "base/units.h"

namespace partita::choose {

/// Something that takes one of several options: an op with its strategies, a tensor with its layouts.
struct StrategyNode {
  std::string name;
  std::vector<Seconds> seconds;           // by option; HUGE_VAL: not allowed
  std::vector<std::vector<Bytes>> bytes;  // by option and resource; none where the graph has no capacities
};

/// What two options together cost on top: the conversion between them. HUGE_VAL: not together.
struct StrategyEdge {
  int32_t from = 0, to = 0;
  std::vector<Seconds> seconds;  // row-major, a row for each option of `from`
};

/// Which option should every node take, so that seconds of nodes and edges add up to the least, and bytes of
/// every resource (memory at a critical moment) stay within its capacity?
/// Example: nodes {1, 4} and {0, 3} with an edge {5, 0; 0, 5} between them: options 0 and 1, 4 seconds.
struct StrategyGraph {
  std::vector<StrategyNode> nodes;
  std::vector<StrategyEdge> edges;
  std::vector<Bytes> capacity;
};

/// An option for every node, and what that costs.
struct StrategyChoice {
  std::vector<int32_t> option;
  Seconds seconds = 0;
  std::vector<Bytes> bytes;  // by resource

  bool operator==(const StrategyChoice&) const = default;
};

/// Adds up a choice. REQUIRES: check(graph) is empty; an option for every node.
StrategyChoice measure(const StrategyGraph& graph, std::vector<int32_t> option);
bool fits(const StrategyGraph& graph, const StrategyChoice& choice);

/// One sentence for everything wrong: sizes that disagree, negative seconds or bytes, edges to nowhere.
std::vector<std::string> check(const StrategyGraph& graph);

}  // namespace partita::choose
