#include "choose/graph/reduce.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>

namespace partita::choose {
namespace {

/// Edges between the same two nodes become one, from the lower number to the higher.
std::vector<StrategyEdge> merged(const StrategyGraph& graph) {
  std::map<std::pair<int32_t, int32_t>, StrategyEdge> found;
  for (const StrategyEdge& edge : graph.edges) {
    bool turned = edge.from > edge.to;
    int32_t low = std::min(edge.from, edge.to), high = std::max(edge.from, edge.to);
    size_t rows = graph.nodes[low].seconds.size(), columns = graph.nodes[high].seconds.size();
    StrategyEdge& sum = found[{low, high}];
    if (sum.seconds.empty()) sum = {low, high, std::vector<Seconds>(rows * columns)};
    for (size_t r = 0; r < rows; ++r)
      for (size_t c = 0; c < columns; ++c)
        sum.seconds[r * columns + c] += turned ? edge.seconds[c * rows + r] : edge.seconds[r * columns + c];
  }
  std::vector<StrategyEdge> edges;
  for (auto& [nodes, edge] : found) edges.push_back(std::move(edge));
  return edges;
}

class Shrinker {
 public:
  explicit Shrinker(const StrategyGraph& graph) : graph_(graph) {
    graph_.edges = merged(graph);
    edges_of_.resize(graph.nodes.size());
    for (size_t e = 0; e < graph_.edges.size(); ++e) {
      edges_of_[graph_.edges[e].from].push_back(e);
      edges_of_[graph_.edges[e].to].push_back(e);
    }
    for (const StrategyNode& node : graph.nodes) {
      std::vector<int32_t> all;
      for (size_t k = 0; k < node.seconds.size(); ++k)
        if (node.seconds[k] < HUGE_VAL || (all.empty() && k + 1 == node.seconds.size()))
          all.push_back(static_cast<int32_t>(k));
      kept_.push_back(all);
    }
  }

  Reduced run() {
    // A node is looked at again when the options of a neighbour got fewer.
    std::vector<bool> waits(kept_.size(), true);
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t v = 0; v < kept_.size(); ++v) {
        if (!waits[v]) continue;
        waits[v] = false;
        if (!shrink(v)) continue;
        changed = true;
        for (size_t e : edges_of_[v]) waits[graph_.edges[e].from] = waits[graph_.edges[e].to] = true;
      }
    }
    return {keep_only(graph_, kept_), kept_};
  }

 private:
  Seconds at(const StrategyEdge& edge, int32_t from, int32_t to) const {
    return edge.seconds[from * graph_.nodes[edge.to].seconds.size() + to];
  }

  // Goldstein's criterion, from the design of proteins: a is never worse than b, against any neighbours.
  bool replaces(size_t v, int32_t a, int32_t b) const {
    const StrategyNode& node = graph_.nodes[v];
    for (size_t m = 0; m < graph_.capacity.size(); ++m)
      if (node.bytes[a][m] > node.bytes[b][m]) return false;
    double worst = node.seconds[a] - node.seconds[b];
    for (size_t e : edges_of_[v]) {
      const StrategyEdge& edge = graph_.edges[e];
      bool first = edge.from == static_cast<int32_t>(v);
      double most = -HUGE_VAL;
      for (int32_t x : kept_[first ? edge.to : edge.from]) {
        Seconds with_a = first ? at(edge, a, x) : at(edge, x, a);
        Seconds with_b = first ? at(edge, b, x) : at(edge, x, b);
        if (with_b < HUGE_VAL) most = std::max(most, with_a - with_b);
      }
      if (most == -HUGE_VAL) return true;  // b goes with nothing
      worst += most;
    }
    return worst <= 0;
  }

  bool shrink(size_t v) {
    std::vector<int32_t>& kept = kept_[v];
    size_t before = kept.size();
    for (size_t i = 0; i < kept.size();) {
      bool gone = false;
      for (size_t j = 0; j < kept.size() && !gone; ++j) gone = j != i && replaces(v, kept[j], kept[i]);
      if (gone)
        kept.erase(kept.begin() + static_cast<ptrdiff_t>(i));
      else
        ++i;
    }
    return kept.size() < before;
  }

  StrategyGraph graph_;
  std::vector<std::vector<size_t>> edges_of_;
  std::vector<std::vector<int32_t>> kept_;
};

}  // namespace

StrategyGraph keep_only(const StrategyGraph& graph, const std::vector<std::vector<int32_t>>& kept) {
  StrategyGraph out{.capacity = graph.capacity};
  for (size_t v = 0; v < kept.size(); ++v) {
    StrategyNode node{graph.nodes[v].name};
    for (int32_t k : kept[v]) {
      node.seconds.push_back(graph.nodes[v].seconds[k]);
      if (!graph.capacity.empty()) node.bytes.push_back(graph.nodes[v].bytes[k]);
    }
    out.nodes.push_back(std::move(node));
  }
  for (const StrategyEdge& edge : graph.edges) {
    StrategyEdge small{edge.from, edge.to};
    size_t columns = graph.nodes[edge.to].seconds.size();
    for (int32_t a : kept[edge.from])
      for (int32_t b : kept[edge.to]) small.seconds.push_back(edge.seconds[a * columns + b]);
    out.edges.push_back(std::move(small));
  }
  return out;
}

Reduced reduce(const StrategyGraph& graph) { return Shrinker(graph).run(); }

std::vector<int32_t> restore(const Reduced& reduced, const std::vector<int32_t>& option) {
  std::vector<int32_t> out;
  for (size_t v = 0; v < option.size(); ++v) out.push_back(reduced.kept[v][option[v]]);
  return out;
}

}  // namespace partita::choose
