#include "schedule/graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"

namespace partita::schedule {

void Graph::add_edge(int32_t from, int32_t to, int64_t delay) {
  out[from].push_back({to, delay});
  ++indegree[to];
}

int32_t Graph::add_node(int64_t cost, std::pair<int, int> step) {
  duration.push_back(cost);
  first_step.push_back(step);
  out.emplace_back();
  indegree.push_back(0);
  return int32_t(duration.size()) - 1;
}

StepIndex::StepIndex(const Schedule& schedule, const std::vector<std::vector<int32_t>>& node)
    : microbatches_(schedule.microbatches),
      at_(size_t(schedule.stages) * schedule.microbatches * kStepKinds, -1) {
  for (int device = 0; device < schedule.devices; ++device)
    for (size_t i = 0; i < schedule.order[device].size(); ++i) {
      const Step& step = schedule.order[device][i];
      at_[(size_t(step.stage) * microbatches_ + step.microbatch) * kStepKinds + size_t(step.kind)] =
          node[device][i];
    }
}

namespace {

// Steps of one block share a node: an overlapped pair, and a step that several devices run together.
void add_blocks(const Schedule& schedule, const Ticks& ticks, Graph& graph) {
  std::map<std::pair<int64_t, int>, int32_t> shared;  // (stage, micro-batch), kind -> node of all its devices
  graph.node.resize(schedule.devices);
  for (int device = 0; device < schedule.devices; ++device) {
    bool joined = false;
    for (size_t i = 0; i < schedule.order[device].size(); ++i) {
      const Step& step = schedule.order[device][i];
      int32_t node = -1;
      if (joined) {
        node = graph.node[device].back();
        graph.duration[node] += ticks.cost(step);
      } else if (schedule.devices_of(step.stage, step.stream).size() > 1) {
        auto [at, fresh] = shared.try_emplace(
            {int64_t(step.stage) * schedule.microbatches + step.microbatch, int(step.kind)}, -1);
        if (fresh) at->second = graph.add_node(ticks.cost(step), {device, int(i)});
        node = at->second;
      } else {
        node = graph.add_node(ticks.cost(step), {device, int(i)});
      }
      graph.node[device].push_back(node);
      joined = step.with_next;
    }
    for (size_t i = 1; i < graph.node[device].size(); ++i)
      if (int32_t before = graph.node[device][i - 1], after = graph.node[device][i]; before != after)
        graph.add_edge(before, after, 0);
  }
}

// One data edge: the output of `producer` is read by a step of `to_stage`.
struct DataEdge {
  int32_t from, to;
  Step producer;
  int to_stage;
};

// The step that makes the input gradient of (stage, micro-batch), as the schedule has it.
Step input_grad_step(const StepIndex& index, int stage, const Step& like) {
  bool split = index.at(stage, like.microbatch, StepKind::kInputGrad) >= 0;
  return {split ? StepKind::kInputGrad : StepKind::kBackward, stage, like.microbatch, like.stream};
}

template <class Visit>
void inputs_of(const Schedule& schedule, const StepIndex& index, const Step& step, int32_t node,
               Visit visit) {
  auto from = [&](Step producer) {
    producer.with_next = false;
    int32_t source = index.at(producer.stage, producer.microbatch, producer.kind);
    CHECK(source >= 0);
    visit(DataEdge{source, node, producer, step.stage});
  };
  Step same{StepKind::kForward, step.stage, step.microbatch, step.stream};
  switch (step.kind) {
    case StepKind::kForward:
      if (step.stage > 0) from({StepKind::kForward, step.stage - 1, step.microbatch, step.stream});
      break;
    case StepKind::kBackward:
    case StepKind::kInputGrad:
      from(same);
      if (step.stage + 1 < schedule.stages) from(input_grad_step(index, step.stage + 1, step));
      break;
    case StepKind::kWeightGrad:
      from({StepKind::kInputGrad, step.stage, step.microbatch, step.stream});
      break;
  }
}

// A step of several devices is visited once, on the first of them.
template <class Visit>
void for_each_input(const Schedule& schedule, const Graph& graph, Visit visit) {
  StepIndex index(schedule, graph.node);
  for (int device = 0; device < schedule.devices; ++device)
    for (size_t i = 0; i < schedule.order[device].size(); ++i) {
      const Step& step = schedule.order[device][i];
      if (schedule.devices_of(step.stage, step.stream).front() == device)
        inputs_of(schedule, index, step, graph.node[device][i], visit);
    }
}

int64_t slowest_hop(const Ticks& ticks, const std::vector<int>& from, const std::vector<int>& to) {
  if (from == to) return 0;
  int64_t hop = 0;
  for (int a : from)
    for (int b : to) hop = std::max(hop, ticks.hop(a, b));
  return hop;
}

}  // namespace

Graph per_peer_graph(const Schedule& schedule, const Ticks& ticks) {
  Graph graph;
  add_blocks(schedule, ticks, graph);
  for_each_input(schedule, graph, [&](const DataEdge& edge) {
    int stream = edge.producer.stream;
    int64_t hop = slowest_hop(ticks, schedule.devices_of(edge.producer.stage, stream),
                              schedule.devices_of(edge.to_stage, stream));
    // A pair that overlaps and feeds itself could never start; the self-edge makes it the cycle it is.
    graph.add_edge(edge.from, edge.to, hop);
  });
  return graph;
}

Graph queued_graph(const Schedule& schedule, const Ticks& ticks, const QueueOrder& queues) {
  Graph graph;
  add_blocks(schedule, ticks, graph);
  std::map<Message, int32_t> transfers;
  for (int device = 0; device < int(queues.size()); ++device) {
    int32_t before = -1;
    for (const Message& transfer : queues[device]) {
      auto [at, fresh] = transfers.try_emplace(transfer, -1);
      if (fresh) {
        at->second = graph.add_node(ticks.hop(transfer.from, transfer.to), {-1, 0});
        graph.label.push_back(fmt::format("transfer of {} from device {} to {}", show(transfer.producer),
                                          transfer.from, transfer.to));
        graph.first_step.back().second = int(graph.label.size()) - 1;
      }
      if (before >= 0) graph.add_edge(before, at->second, 0);
      before = at->second;
    }
  }
  for_each_input(schedule, graph, [&](const DataEdge& edge) {
    int from = schedule.device_of(edge.producer.stage, edge.producer.stream);
    int to = schedule.device_of(edge.to_stage, edge.producer.stream);
    if (from == to) return graph.add_edge(edge.from, edge.to, 0);
    auto at = transfers.find({edge.producer, from, to});
    // A transfer no queue lists never happens: its reader waits for itself.
    if (at == transfers.end()) return graph.add_edge(edge.to, edge.to, 0);
    graph.add_edge(edge.from, at->second, 0);
    graph.add_edge(at->second, edge.to, 0);
  });
  return graph;
}

std::vector<int64_t> earliest_starts(const Graph& graph) {
  std::vector<int64_t> start(graph.duration.size(), 0);
  std::vector<int32_t> waiting = graph.indegree, ready;
  for (size_t node = 0; node < waiting.size(); ++node)
    if (waiting[node] == 0) ready.push_back(int32_t(node));
  for (size_t i = 0; i < ready.size(); ++i) {
    int64_t end = start[ready[i]] + graph.duration[ready[i]];
    for (const Graph::Edge& edge : graph.out[ready[i]]) {
      start[edge.to] = std::max(start[edge.to], end + edge.delay);
      if (--waiting[edge.to] == 0) ready.push_back(edge.to);
    }
  }
  for (size_t node = 0; node < waiting.size(); ++node)
    if (waiting[node] > 0) start[node] = -1;
  return start;
}

std::vector<int32_t> find_cycle(const Graph& graph, const std::vector<int64_t>& starts) {
  // Every stuck node has a stuck predecessor, so walking back from any of them must come round.
  std::vector<int32_t> blocker(starts.size(), -1);
  for (size_t node = 0; node < starts.size(); ++node)
    if (starts[node] < 0)
      for (const Graph::Edge& edge : graph.out[node])
        if (blocker[edge.to] < 0) blocker[edge.to] = int32_t(node);
  int32_t at = int32_t(std::find(starts.begin(), starts.end(), -1) - starts.begin());
  CHECK(at < int32_t(starts.size()));
  std::vector<int> place(starts.size(), -1);
  std::vector<int32_t> walk;
  while (place[at] < 0) {
    place[at] = int(walk.size());
    walk.push_back(at);
    at = blocker[at];
  }
  return {walk.begin() + place[at], walk.end()};
}

}  // namespace partita::schedule
