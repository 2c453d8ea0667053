#include "choose/graph/graph.h"

#include <fmt/format.h>

namespace partita::choose {

StrategyChoice measure(const StrategyGraph& graph, std::vector<int32_t> option) {
  StrategyChoice choice{.bytes = std::vector<Bytes>(graph.capacity.size())};
  for (size_t v = 0; v < graph.nodes.size(); ++v) {
    const StrategyNode& node = graph.nodes[v];
    choice.seconds += node.seconds[option[v]];
    for (size_t m = 0; m < graph.capacity.size(); ++m) choice.bytes[m] += node.bytes[option[v]][m];
  }
  for (const StrategyEdge& edge : graph.edges)
    choice.seconds += edge.seconds[option[edge.from] * graph.nodes[edge.to].seconds.size() + option[edge.to]];
  choice.option = std::move(option);
  return choice;
}

bool fits(const StrategyGraph& graph, const StrategyChoice& choice) {
  for (size_t m = 0; m < graph.capacity.size(); ++m)
    if (choice.bytes[m] > graph.capacity[m]) return false;
  return true;
}

std::vector<std::string> check(const StrategyGraph& graph) {
  std::vector<std::string> wrong;
  auto bad = [](const std::vector<Seconds>& list) {
    for (Seconds seconds : list)
      if (!(seconds >= 0)) return true;
    return false;
  };
  for (size_t v = 0; v < graph.nodes.size(); ++v) {
    const StrategyNode& node = graph.nodes[v];
    if (node.seconds.empty()) wrong.push_back(fmt::format("node {} ({}) has no option", v, node.name));
    if (bad(node.seconds)) wrong.push_back(fmt::format("node {} ({}) has seconds below 0", v, node.name));
    if (!graph.capacity.empty() && node.bytes.size() != node.seconds.size())
      wrong.push_back(fmt::format("node {} ({}) has {} options, and bytes of {}", v, node.name,
                                  node.seconds.size(), node.bytes.size()));
    for (const std::vector<Bytes>& bytes : node.bytes)
      if (bytes.size() != graph.capacity.size())
        wrong.push_back(fmt::format("node {} ({}) has bytes of {} resources, the graph of {}", v, node.name,
                                    bytes.size(), graph.capacity.size()));
  }
  auto size = static_cast<int32_t>(graph.nodes.size());
  for (size_t e = 0; e < graph.edges.size(); ++e) {
    const StrategyEdge& edge = graph.edges[e];
    if (edge.from < 0 || edge.to < 0 || edge.from >= size || edge.to >= size || edge.from == edge.to)
      wrong.push_back(
          fmt::format("edge {} joins {} and {}, needs two of {} nodes", e, edge.from, edge.to, size));
    else if (edge.seconds.size() !=
             graph.nodes[edge.from].seconds.size() * graph.nodes[edge.to].seconds.size())
      wrong.push_back(fmt::format("edge {} has {} numbers, needs {} x {}", e, edge.seconds.size(),
                                  graph.nodes[edge.from].seconds.size(),
                                  graph.nodes[edge.to].seconds.size()));
    if (bad(edge.seconds)) wrong.push_back(fmt::format("edge {} has seconds below 0", e));
  }
  for (size_t m = 0; m < graph.capacity.size(); ++m)
    if (graph.capacity[m] < 0) wrong.push_back(fmt::format("capacity {} is {}", m, graph.capacity[m]));
  return wrong;
}

}  // namespace partita::choose
