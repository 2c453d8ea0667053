#pragma once

#include <memory>
#include <vector>

#include "choose/graph/graph.h"

namespace partita::choose {

/// A graph without capacities, contracted to what is hard about it. A node with at most two neighbours is
/// taken out: what it costs at best becomes a cost of its neighbour, or of the edge between the two (R0, R1
/// and R2 of partitioned Boolean quadratic programs); options that others replace go (Goldstein). Nothing is
/// lost: a best choice of the core, expanded, is a best choice of the graph. Equal numbers are worked on
/// once, so that a model of many equal layers costs what its distinct layers cost. Example: a chain or a tree
/// of any length leaves no core.
class Contraction {
 public:
  /// REQUIRES: check(graph) is empty; no capacities.
  explicit Contraction(const StrategyGraph& graph);
  ~Contraction();

  const StrategyGraph& core() const;
  /// Seconds of the best choice = those of the core's best + these. HUGE_VAL: nothing is allowed.
  Seconds settled() const;
  /// Options for all nodes of the graph from those for the core's nodes; the others take their best.
  std::vector<int32_t> expand(const std::vector<int32_t>& option) const;
  /// Numbers looked at.
  int64_t work() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace partita::choose
