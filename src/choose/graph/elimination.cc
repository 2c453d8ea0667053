#include "choose/graph/elimination.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"

namespace partita::choose {

Elimination::Elimination(const StrategyGraph& graph, int64_t table_limit)
    : graph_(graph), limit_(table_limit) {
  for (const StrategyEdge& edge : graph.edges) {
    CHECK(edge.from < edge.to);
    // A node with one option ties nobody: its edges are costs of the other node.
    Factor factor{{}, static_cast<int64_t>(edge.seconds.size())};
    for (int32_t node : {edge.from, edge.to})
      if (graph.nodes[node].seconds.size() > 1) factor.nodes.push_back(node);
    factors_.push_back(std::move(factor));
    std::vector<double> free;
    for (Seconds seconds : edge.seconds) free.push_back(seconds == HUGE_VAL ? HUGE_VAL : 0);
    free_edges_.push_back(std::move(free));
  }
  order_nodes();
}

/// Combinations of options that minimising over `node` runs through; `scope` are the other nodes, in any
/// order. A value that all layers read has hundreds of them, so each is looked at once.
double Elimination::join_size(const std::vector<int32_t>& factors, int32_t node,
                              std::vector<int32_t>& scope) {
  scope.clear();
  seen_.resize(graph_.nodes.size());
  seen_[node] = ++look_;
  auto size = static_cast<double>(graph_.nodes[node].seconds.size());
  for (int32_t f : factors)
    for (int32_t other : factors_[f].nodes) {
      if (seen_[other] == look_) continue;
      seen_[other] = look_;
      scope.push_back(other);
      size *= static_cast<double>(graph_.nodes[other].seconds.size());
    }
  return size;
}

// Greedy: always the node whose table is cheapest to make. For graphs as thin as models this finds the order
// of the layers by itself.
void Elimination::order_nodes() {
  auto size = static_cast<int32_t>(graph_.nodes.size());
  std::vector<std::vector<int32_t>> factors_of(size);
  for (size_t f = 0; f < factors_.size(); ++f)
    for (int32_t node : factors_[f].nodes) factors_of[node].push_back(static_cast<int32_t>(f));
  std::vector<double> price(size);
  std::vector<int32_t> scope;
  std::set<std::pair<double, int32_t>> waiting;
  for (int32_t v = 0; v < size; ++v) {
    price[v] = join_size(factors_of[v], v, scope);
    waiting.insert({price[v], v});
  }
  while (!waiting.empty()) {
    int32_t best = waiting.begin()->second;
    waiting.erase(waiting.begin());
    join_size(factors_of[best], best, scope);
    std::vector<int32_t> neighbours = scope;
    eliminate(best, factors_of);
    for (int32_t v : neighbours) {
      waiting.erase({price[v], v});
      price[v] = join_size(factors_of[v], v, scope);
      waiting.insert({price[v], v});
    }
  }
}

void Elimination::eliminate(int32_t node, std::vector<std::vector<int32_t>>& factors_of) {
  std::vector<int32_t> waiting = factors_of[node], scope;
  std::vector<std::vector<int32_t>> groups;
  // Largest first, each into the first group that stays small enough.
  std::stable_sort(waiting.begin(), waiting.end(),
                   [&](int32_t a, int32_t b) { return factors_[a].size > factors_[b].size; });
  if (join_size(waiting, node, scope) <= static_cast<double>(limit_)) {
    groups.push_back(std::move(waiting));
    waiting.clear();
  }
  for (int32_t f : waiting) {
    auto fits = [&](std::vector<int32_t> group) {
      group.push_back(f);
      return join_size(group, node, scope) <= static_cast<double>(limit_);
    };
    auto group = std::find_if(groups.begin(), groups.end(), fits);
    if (group == groups.end())
      groups.push_back({f});
    else
      group->push_back(f);
  }
  if (groups.empty()) groups.emplace_back();
  if (groups.size() > 1) cut_.push_back(node);
  for (size_t g = 0; g < groups.size(); ++g) {
    double size = join_size(groups[g], node, scope);
    std::sort(scope.begin(), scope.end());
    work_ += static_cast<int64_t>(size) * std::max<int64_t>(1, static_cast<int64_t>(groups[g].size()));
    Factor result{scope,
                  static_cast<int64_t>(size) / static_cast<int64_t>(graph_.nodes[node].seconds.size())};
    largest_ = std::max(largest_, result.size);
    auto number = static_cast<int32_t>(factors_.size());
    for (int32_t f : groups[g])
      for (int32_t other : factors_[f].nodes) std::erase(factors_of[other], f);
    for (int32_t other : scope) factors_of[other].push_back(number);
    joins_.push_back({node, g == 0, groups[g], number});
    factors_.push_back(std::move(result));
  }
}

int64_t Elimination::stride(const Factor& factor, int32_t node) const {
  int64_t stride = 1;
  for (size_t i = factor.nodes.size(); i-- > 0;) {
    if (factor.nodes[i] == node) return stride;
    stride *= static_cast<int64_t>(graph_.nodes[factor.nodes[i]].seconds.size());
  }
  return 0;
}

std::vector<double> Elimination::combine(const Join& join, const std::vector<std::vector<double>>& cost,
                                         const std::vector<std::vector<double>>& values) const {
  const Factor& result = factors_[join.result];
  size_t options = cost[join.node].size(), parts = join.factors.size(), depth = result.nodes.size();
  std::vector<const double*> at;
  std::vector<int64_t> inner;
  std::vector<std::vector<int64_t>> outer(depth, std::vector<int64_t>(parts));
  for (size_t p = 0; p < parts; ++p) {
    const Factor& factor = factors_[join.factors[p]];
    at.push_back(values[join.factors[p]].data());
    inner.push_back(stride(factor, join.node));
    for (size_t d = 0; d < depth; ++d) outer[d][p] = stride(factor, result.nodes[d]);
  }
  std::vector<double> own = join.with_cost ? cost[join.node] : std::vector<double>(options, 0.0);
  std::vector<double> out(result.size), sum(options);
  std::vector<int64_t> digit(depth);
  for (int64_t i = 0; i < result.size; ++i) {
    sum = own;
    for (size_t p = 0; p < parts; ++p)
      for (size_t k = 0; k < options; ++k) sum[k] += at[p][static_cast<int64_t>(k) * inner[p]];
    out[i] = *std::min_element(sum.begin(), sum.end());
    // The next combination of options of the neighbours, the last fastest.
    for (size_t d = depth; d-- > 0;) {
      auto count = static_cast<int64_t>(graph_.nodes[result.nodes[d]].seconds.size());
      bool wraps = ++digit[d] == count;
      for (size_t p = 0; p < parts; ++p) at[p] += wraps ? -(count - 1) * outer[d][p] : outer[d][p];
      if (!wraps) break;
      digit[d] = 0;
    }
  }
  return out;
}

Eliminated Elimination::run(const std::vector<std::vector<double>>& cost, bool with_edges) const {
  std::vector<std::vector<double>> values(factors_.size());
  for (size_t e = 0; e < graph_.edges.size(); ++e)
    values[e] = with_edges ? graph_.edges[e].seconds : free_edges_[e];
  Eliminated answer{.option = std::vector<int32_t>(graph_.nodes.size(), -1)};
  for (size_t e = 0; e < graph_.edges.size(); ++e)
    if (factors_[e].nodes.empty()) answer.bound += values[e][0];
  for (const Join& join : joins_) {
    values[join.result] = combine(join, cost, values);
    if (factors_[join.result].nodes.empty()) answer.bound += values[join.result][0];
  }
  // Backwards every node sees its neighbours decided.
  std::vector<double> sum;
  for (size_t j = joins_.size(); j-- > 0;) {
    const Join& join = joins_[j];
    if (sum.empty()) sum = cost[join.node];
    for (int32_t f : join.factors) {
      int64_t place = 0;
      for (int32_t other : factors_[f].nodes)
        if (other != join.node) place += stride(factors_[f], other) * answer.option[other];
      int64_t step = stride(factors_[f], join.node);
      for (size_t k = 0; k < sum.size(); ++k) sum[k] += values[f][place + step * static_cast<int64_t>(k)];
    }
    if (!join.with_cost) continue;
    answer.option[join.node] = static_cast<int32_t>(std::min_element(sum.begin(), sum.end()) - sum.begin());
    sum.clear();
  }
  return answer;
}

}  // namespace partita::choose
