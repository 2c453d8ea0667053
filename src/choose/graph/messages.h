#pragma once

#include "choose/graph/graph.h"

namespace partita::choose {

/// What passing messages found out about a graph, capacities aside.
struct Narrowed {
  double bound = 0;                         // no choice takes less
  StrategyChoice best;                      // the best choice met; HUGE_VAL seconds: none was allowed
  std::vector<std::vector<double>> excess;  // by node, option: a choice with it takes at least bound + excess
  StrategyGraph moved;                      // the same graph with its costs where the messages left them
  int64_t work = 0;                         // numbers looked at

  /// By node: options that a choice below `seconds` may take, and the nearest one.
  std::vector<std::vector<int32_t>> below(double seconds) const;
  /// By node: the `count` nearest options.
  std::vector<std::vector<int32_t>> nearest(size_t count) const;
};

/// Moves costs between nodes and edges so that the sum of all minima, a bound, grows: forwards and backwards
/// through the nodes, each first takes over what its edges cost at least and then hands it on to the edges
/// ahead (Kolmogorov's sequential messages). The total of any choice stays the same. Ends when the bound
/// stands, or after `sweeps`. Small where tables are large: work grows with edges times options squared.
/// REQUIRES: check(graph) is empty; edges run from the lower node to the higher.
Narrowed pass_messages(const StrategyGraph& graph, int sweeps);

}  // namespace partita::choose
