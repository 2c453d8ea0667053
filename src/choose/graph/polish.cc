#include "choose/graph/polish.h"

#include <cmath>

namespace partita::choose {
namespace {

constexpr int kRounds = 20;

class Polisher {
 public:
  Polisher(const StrategyGraph& graph, StrategyChoice choice) : graph_(graph), choice_(std::move(choice)) {
    edges_of_.resize(graph.nodes.size());
    for (size_t e = 0; e < graph.edges.size(); ++e) {
      edges_of_[graph.edges[e].from].push_back(static_cast<int32_t>(e));
      edges_of_[graph.edges[e].to].push_back(static_cast<int32_t>(e));
    }
  }

  StrategyChoice run() {
    for (int round = 0; round < kRounds; ++round) {
      bool any = false;
      for (size_t v = 0; v < graph_.nodes.size(); ++v) any |= improve(static_cast<int32_t>(v), -1);
      for (const StrategyEdge& edge : graph_.edges) any |= improve(edge.from, edge.to);
      if (!any) break;
    }
    return measure(graph_, choice_.option);
  }

 private:
  /// Seconds that depend on the options of `u` and `v` (-1: of `u` alone).
  double around(int32_t u, int32_t v) const {
    double sum = graph_.nodes[u].seconds[choice_.option[u]];
    for (int32_t e : edges_of_[u]) sum += seconds(e);
    if (v < 0) return sum;
    sum += graph_.nodes[v].seconds[choice_.option[v]];
    for (int32_t e : edges_of_[v])
      if (graph_.edges[e].from != u && graph_.edges[e].to != u) sum += seconds(e);
    return sum;
  }

  double seconds(int32_t e) const {
    const StrategyEdge& edge = graph_.edges[e];
    return edge
        .seconds[choice_.option[edge.from] * graph_.nodes[edge.to].seconds.size() + choice_.option[edge.to]];
  }

  void set(int32_t node, int32_t option) {
    for (size_t m = 0; m < graph_.capacity.size(); ++m)
      choice_.bytes[m] +=
          graph_.nodes[node].bytes[option][m] - graph_.nodes[node].bytes[choice_.option[node]][m];
    choice_.option[node] = option;
  }

  bool improve(int32_t u, int32_t v) {
    int32_t first = choice_.option[u], second = v < 0 ? 0 : choice_.option[v];
    int32_t best_first = first, best_second = second;
    double start = around(u, v), best = start * (1 - 1e-12);
    auto count = [&](int32_t node) {
      return node < 0 ? 1 : static_cast<int32_t>(graph_.nodes[node].seconds.size());
    };
    for (int32_t a = 0; a < count(u); ++a)
      for (int32_t b = 0; b < count(v); ++b) {
        set(u, a);
        if (v >= 0) set(v, b);
        if (!fits(graph_, choice_)) continue;
        double now = around(u, v);
        if (!(now < best)) continue;
        best = now;
        best_first = a;
        best_second = b;
      }
    set(u, best_first);
    if (v >= 0) set(v, best_second);
    return best_first != first || best_second != second;
  }

  const StrategyGraph& graph_;
  StrategyChoice choice_;
  std::vector<std::vector<int32_t>> edges_of_;
};

}  // namespace

StrategyChoice polish(const StrategyGraph& graph, StrategyChoice choice) {
  return Polisher(graph, std::move(choice)).run();
}

}  // namespace partita::choose
