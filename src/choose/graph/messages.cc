#include "choose/graph/messages.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "choose/graph/most_finite.h"

namespace partita::choose {
namespace {

constexpr double kStands = 1e-7;  // growth of the bound in some sweeps, as a share: no more to gain
constexpr int kPatience = 8;      // such sweeps

class Passer {
 public:
  explicit Passer(const StrategyGraph& graph) : graph_(graph) {
    // Sums with infinity would lose what else is in them; this much is never worth it.
    for (const StrategyNode& node : graph.nodes) never_ += most_finite(node.seconds);
    for (const StrategyEdge& edge : graph.edges) never_ += most_finite(edge.seconds);
    never_ = 4 * never_ + 1;
    for (const StrategyNode& node : graph.nodes) node_.push_back(finite(node.seconds));
    ahead_.resize(graph.nodes.size());
    behind_.resize(graph.nodes.size());
    for (size_t e = 0; e < graph.edges.size(); ++e) {
      edge_.push_back(finite(graph.edges[e].seconds));
      ahead_[graph.edges[e].from].push_back(e);
      behind_[graph.edges[e].to].push_back(e);
      work_each_ += 4 * static_cast<int64_t>(graph.edges[e].seconds.size());
    }
  }

  Narrowed run(int sweeps) {
    double last = bound();
    for (int sweep = 0, idle = 0; sweep < sweeps && idle < kPatience; ++sweep) {
      for (size_t v = 0; v < node_.size(); ++v) visit(v, ahead_[v], behind_[v].size());
      decode();
      for (size_t v = node_.size(); v-- > 0;) visit(v, behind_[v], ahead_[v].size());
      out_.work += work_each_;
      double now = bound();
      idle = now - last <= kStands * std::abs(now) ? idle + 1 : 0;
      last = now;
      if (known_ && out_.best.seconds <= now * (1 + 1e-12)) break;
    }
    out_.bound = last;
    find_excess();
    write_moved();
    return std::move(out_);
  }

 private:
  std::vector<double> finite(std::vector<double> list) const {
    for (double& seconds : list) seconds = std::min(seconds, never_);
    return list;
  }

  size_t options(int32_t node) const { return node_[node].size(); }

  /// For each option of `v` the least that edge `e` costs with it.
  std::vector<double> least(size_t e, size_t v) const {
    const StrategyEdge& edge = graph_.edges[e];
    size_t rows = options(edge.from), columns = options(edge.to);
    bool by_row = edge.from == static_cast<int32_t>(v);
    std::vector<double> out(by_row ? rows : columns, HUGE_VAL);
    const double* at = edge_[e].data();
    for (size_t r = 0; r < rows; ++r, at += columns)
      if (by_row)
        out[r] = *std::min_element(at, at + columns);
      else
        for (size_t c = 0; c < columns; ++c) out[c] = std::min(out[c], at[c]);
    return out;
  }

  /// Adds `factor` times `cost` by option of `v` to the edge.
  void add(size_t e, size_t v, const std::vector<double>& cost, double factor) {
    const StrategyEdge& edge = graph_.edges[e];
    size_t rows = options(edge.from), columns = options(edge.to);
    bool by_row = edge.from == static_cast<int32_t>(v);
    for (size_t r = 0; r < rows; ++r)
      for (size_t c = 0; c < columns; ++c) edge_[e][r * columns + c] += factor * cost[by_row ? r : c];
  }

  void take_over(size_t v, const std::vector<size_t>& edges) {
    for (size_t e : edges) {
      std::vector<double> cost = least(e, v);
      add(e, v, cost, -1);
      for (size_t k = 0; k < cost.size(); ++k) node_[v][k] += cost[k];
    }
  }

  void visit(size_t v, const std::vector<size_t>& onward, size_t others) {
    take_over(v, ahead_[v]);
    take_over(v, behind_[v]);
    if (onward.empty()) return;
    double share = 1.0 / static_cast<double>(std::max(onward.size(), others));
    for (size_t e : onward) add(e, v, node_[v], share);
    double left = 1 - share * static_cast<double>(onward.size());
    for (double& cost : node_[v]) cost *= left < 1e-15 ? 0 : left;
  }

  double bound() const {
    double sum = 0;
    for (const std::vector<double>& costs : node_) sum += *std::min_element(costs.begin(), costs.end());
    for (const std::vector<double>& costs : edge_) sum += *std::min_element(costs.begin(), costs.end());
    return sum;
  }

  // Node by node, against those that are decided already; ahead of it stands what was handed on.
  void decode() {
    std::vector<int32_t> option(node_.size());
    for (size_t v = 0; v < node_.size(); ++v) {
      std::vector<double> cost = node_[v];
      for (size_t e : behind_[v])
        for (size_t k = 0; k < cost.size(); ++k)
          cost[k] += edge_[e][option[graph_.edges[e].from] * cost.size() + k];
      for (size_t e : ahead_[v]) {
        std::vector<double> more = least(e, v);
        for (size_t k = 0; k < cost.size(); ++k) cost[k] += more[k];
      }
      option[v] = static_cast<int32_t>(std::min_element(cost.begin(), cost.end()) - cost.begin());
    }
    StrategyChoice choice = measure(graph_, std::move(option));
    if (choice.seconds == HUGE_VAL || (known_ && choice.seconds >= out_.best.seconds)) return;
    out_.best = std::move(choice);
    known_ = true;
  }

  // What an option costs over the minima of its node and edges can be added to the bound.
  void find_excess() {
    out_.excess = node_;
    for (size_t v = 0; v < node_.size(); ++v) {
      std::vector<double>& over = out_.excess[v];
      double base = *std::min_element(over.begin(), over.end());
      for (const auto* edges : {&ahead_[v], &behind_[v]})
        for (size_t e : *edges) {
          std::vector<double> cost = least(e, v);
          base += *std::min_element(cost.begin(), cost.end());
          for (size_t k = 0; k < over.size(); ++k) over[k] += cost[k];
        }
      for (double& seconds : over) seconds -= base;
    }
    if (!known_) out_.best.seconds = HUGE_VAL;
  }

  void write_moved() {
    for (size_t v = 0; v < node_.size(); ++v)
      out_.moved.nodes.push_back({graph_.nodes[v].name, std::move(node_[v]), {}});
    for (size_t e = 0; e < edge_.size(); ++e)
      out_.moved.edges.push_back({graph_.edges[e].from, graph_.edges[e].to, std::move(edge_[e])});
  }

  const StrategyGraph& graph_;
  double never_ = 0;
  std::vector<std::vector<double>> node_, edge_;
  std::vector<std::vector<size_t>> ahead_, behind_;  // edges by node
  int64_t work_each_ = 0;
  bool known_ = false;
  Narrowed out_;
};

}  // namespace

std::vector<std::vector<int32_t>> Narrowed::below(double seconds) const {
  std::vector<std::vector<int32_t>> kept = nearest(1);
  for (size_t v = 0; v < excess.size(); ++v) {
    int32_t first = kept[v][0];
    kept[v].clear();
    for (int32_t k = 0; k < static_cast<int32_t>(excess[v].size()); ++k)
      if (k == first || !(bound + excess[v][k] > seconds * (1 + 1e-12))) kept[v].push_back(k);
  }
  return kept;
}

std::vector<std::vector<int32_t>> Narrowed::nearest(size_t count) const {
  std::vector<std::vector<int32_t>> kept;
  for (const std::vector<double>& over : excess) {
    std::vector<int32_t> order(over.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return over[a] < over[b]; });
    order.resize(std::min(order.size(), count));
    std::sort(order.begin(), order.end());
    kept.push_back(std::move(order));
  }
  return kept;
}

Narrowed pass_messages(const StrategyGraph& graph, int sweeps) { return Passer(graph).run(sweeps); }

}  // namespace partita::choose
