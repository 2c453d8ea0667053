#include "choose/graph/priced_search.h"

#include <algorithm>
#include <cmath>

#include "choose/graph/free_search.h"
#include "choose/graph/most_finite.h"
#include "choose/graph/polish.h"
#include "choose/resource_prices.h"

namespace partita::choose {
namespace {

class PricedSearch {
 public:
  PricedSearch(const StrategyGraph& graph, const StrategyLimits& limits) : graph_(graph), limits_(limits) {
    for (const StrategyNode& node : graph.nodes) scale_ += most_finite(node.seconds);
    for (const StrategyEdge& edge : graph.edges) scale_ += most_finite(edge.seconds);
  }

  StrategyAnswer run() {
    auto oracle = [this](std::span<const double> multiplier, bool with_seconds) {
      return propose(multiplier, with_seconds);
    };
    std::optional<ResourcePrices> prices = find_prices(oracle, graph_.capacity, scale_);
    if (!prices) {
      answer_.proved = !allowed_ || least_is_exact_;
      return std::move(answer_);
    }
    answer_.multiplier = prices->multiplier;
    if (!answer_.best) return std::move(answer_);
    answer_.best = polish(graph_, *std::move(answer_.best));
    answer_.bound = std::min(prices->bound, answer_.best->seconds);
    answer_.proved = answer_.bound >= answer_.best->seconds * (1 - 1e-11);
    if (answer_.proved) answer_.bound = answer_.best->seconds;
    return std::move(answer_);
  }

 private:
  /// Bytes at these prices instead of capacities; without seconds bytes alone count, and what goes together.
  StrategyGraph priced(std::span<const double> multiplier, bool with_seconds) const {
    StrategyGraph out;
    for (const StrategyNode& node : graph_.nodes) {
      StrategyNode& to = out.nodes.emplace_back(node.name, node.seconds, std::vector<std::vector<Bytes>>());
      for (size_t k = 0; k < to.seconds.size(); ++k) {
        if (!with_seconds && to.seconds[k] < HUGE_VAL) to.seconds[k] = 0;
        for (size_t m = 0; m < multiplier.size(); ++m)
          to.seconds[k] += multiplier[m] * static_cast<double>(node.bytes[k][m]);
      }
    }
    for (const StrategyEdge& edge : graph_.edges) {
      if (with_seconds) out.edges.push_back(edge);
      if (with_seconds || std::none_of(edge.seconds.begin(), edge.seconds.end(),
                                       [](Seconds seconds) { return seconds == HUGE_VAL; }))
        continue;
      out.edges.push_back(edge);
      for (Seconds& seconds : out.edges.back().seconds) seconds = seconds < HUGE_VAL ? 0 : HUGE_VAL;
    }
    return out;
  }

  Proposal propose(std::span<const double> multiplier, bool with_seconds) {
    StrategyLimits each = limits_;
    each.work = limits_.work / 16;
    StrategyAnswer found = search_free(priced(multiplier, with_seconds), each);
    answer_.work += found.work;
    answer_.branches += found.branches;
    answer_.largest_table = std::max(answer_.largest_table, found.largest_table);
    if (!with_seconds) least_is_exact_ = found.proved;
    if (!found.best) {
      allowed_ = false;
      return {HUGE_VAL, scale_, std::vector<Bytes>(graph_.capacity.size(), 0), proposals_++};
    }
    StrategyChoice choice = measure(graph_, found.best->option);
    Proposal proposal{found.bound, choice.seconds, choice.bytes, proposals_++};
    if (fits(graph_, choice) && (!answer_.best || choice.seconds < answer_.best->seconds))
      answer_.best = std::move(choice);
    return proposal;
  }

  const StrategyGraph& graph_;
  StrategyLimits limits_;
  double scale_ = 0;  // the most any choice can take
  int32_t proposals_ = 0;
  bool allowed_ = true, least_is_exact_ = true;
  StrategyAnswer answer_;
};

}  // namespace

StrategyAnswer search_priced(const StrategyGraph& graph, const StrategyLimits& limits) {
  return PricedSearch(graph, limits).run();
}

}  // namespace partita::choose
