#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "schedule/cost.h"
#include "schedule/evaluate.h"
#include "schedule/schedule.h"

namespace partita::schedule {

/// The happens-before graph of a schedule: a node for each block of steps that start together, and for each
/// queued transfer; an edge carries the delay between the end of one and the start of the other.
struct Graph {
  struct Edge {
    int32_t to;
    int64_t delay;
  };
  std::vector<int64_t> duration;
  std::vector<std::string> label;  ///< empty for steps: made only when a cycle is told
  std::vector<std::pair<int, int>>
      first_step;                          ///< (device, position) of a node's first step, or (-1, transfer)
  std::vector<std::vector<int32_t>> node;  ///< [device][position]
  std::vector<std::vector<Edge>> out;
  std::vector<int32_t> indegree;

  void add_edge(int32_t from, int32_t to, int64_t delay);
  int32_t add_node(int64_t cost, std::pair<int, int> step);
};

/// Position of the node that runs each (stage, micro-batch, kind); -1 where there is none.
class StepIndex {
 public:
  StepIndex(const Schedule& schedule, const std::vector<std::vector<int32_t>>& node);
  int32_t at(int stage, int microbatch, StepKind kind) const {
    return at_[(size_t(stage) * microbatches_ + microbatch) * kStepKinds + size_t(kind)];
  }
  /// The backward that makes the input gradient: fused or split, whichever the schedule has.
  int32_t input_grad(int stage, int microbatch) const {
    int32_t split = at(stage, microbatch, StepKind::kInputGrad);
    return split >= 0 ? split : at(stage, microbatch, StepKind::kBackward);
  }

 private:
  int microbatches_;
  std::vector<int32_t> at_;
};

/// Happens-before of compute order and data, transfers as delays.
Graph per_peer_graph(const Schedule& schedule, const Ticks& ticks);
/// Happens-before with transfers as nodes that hold the queues of both ends.
Graph queued_graph(const Schedule& schedule, const Ticks& ticks, const QueueOrder& queues);

/// Earliest start of every node, or -1 for those that a cycle keeps from starting.
std::vector<int64_t> earliest_starts(const Graph& graph);

/// A cycle among the nodes that never start, in waiting order: each waits for the next.
/// REQUIRES: some start is -1.
std::vector<int32_t> find_cycle(const Graph& graph, const std::vector<int64_t>& starts);

}  // namespace partita::schedule
