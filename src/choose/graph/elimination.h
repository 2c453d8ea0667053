#pragma once

#include <cstdint>
#include <vector>

#include "choose/graph/graph.h"

namespace partita::choose {

/// Least seconds of a graph at given costs of its nodes, capacities aside.
struct Eliminated {
  double bound = 0;             // no choice is below it; HUGE_VAL: no choice is allowed
  std::vector<int32_t> option;  // exact: a choice that reaches it; otherwise one that is near
};

/// Nodes of a graph are taken out one after another: what is left of a node is a table of what it costs at
/// best for every combination of options of its neighbours. Exact while no table exceeds the limit; beyond,
/// the parts of a sum are minimised apart, which gives a bound (Dechter's mini-buckets). The order is found
/// once, then costs of nodes can be changed and tried again. Example: a chain of n nodes with k options takes
/// n tables of k numbers: dynamic programming.
class Elimination {
 public:
  /// REQUIRES: check(graph) is empty; `graph` outlives it.
  Elimination(const StrategyGraph& graph, int64_t table_limit);

  /// `cost` by node and option, HUGE_VAL where an option is ruled out. Without `with_edges` edges cost
  /// nothing, but pairs that are not allowed stay so.
  Eliminated run(const std::vector<std::vector<double>>& cost, bool with_edges = true) const;

  bool exact() const { return cut_.empty(); }
  /// Nodes whose sums were minimised apart.
  const std::vector<int32_t>& cut() const { return cut_; }
  /// Numbers added up in one run.
  int64_t work() const { return work_; }
  /// Numbers in the largest table.
  int64_t largest() const { return largest_; }

 private:
  /// A table over some nodes: an edge, or what eliminating a node left.
  struct Factor {
    std::vector<int32_t> nodes;  // ascending; the last varies fastest
    int64_t size = 1;
  };
  /// Factors that are added and minimised over `node` together.
  struct Join {
    int32_t node = 0;
    bool with_cost = false;        // the node's own cost counts once
    std::vector<int32_t> factors;  // by number
    int32_t result = 0;            // the factor it makes
  };

  void order_nodes();
  void eliminate(int32_t node, std::vector<std::vector<int32_t>>& factors_of);
  double join_size(const std::vector<int32_t>& factors, int32_t node, std::vector<int32_t>& scope);
  int64_t stride(const Factor& factor, int32_t node) const;
  std::vector<double> combine(const Join& join, const std::vector<std::vector<double>>& cost,
                              const std::vector<std::vector<double>>& values) const;

  const StrategyGraph& graph_;
  int64_t limit_;
  std::vector<Factor> factors_;  // the edges of the graph first
  std::vector<Join> joins_;      // in order of elimination
  std::vector<int32_t> cut_;
  std::vector<std::vector<double>> free_edges_;  // 0, or HUGE_VAL where not allowed
  int64_t work_ = 0, largest_ = 0;
  std::vector<int64_t> seen_;  // by node: the look that saw it last
  int64_t look_ = 0;
};

}  // namespace partita::choose
