#include "choose/graph/branch.h"

#include <algorithm>
#include <cmath>
#include <queue>

#include "choose/graph/elimination.h"
#include "choose/graph/polish.h"
#include "choose/resource_prices.h"

namespace partita::choose {
namespace {

constexpr double kNear = 0.02;  // of the best known: worth polishing

/// One branch: a node takes this option, or does not.
struct Decision {
  int32_t node = 0, option = 0;
  bool taken = false;
};

struct Branch {
  std::vector<Decision> decisions;
  double bound = 0;
  int64_t number = 0;
  std::vector<double> multiplier;
  Decision next;  // what to decide here

  bool operator<(const Branch& other) const {
    return bound != other.bound ? bound > other.bound : number > other.number;
  }
};

class BranchAndBound {
 public:
  BranchAndBound(const StrategyGraph& graph, const StrategyLimits& limits)
      : graph_(graph), limits_(limits), elimination_(graph, limits.table) {
    for (const StrategyNode& node : graph.nodes) {
      double most = 0;
      for (Seconds seconds : node.seconds)
        if (seconds < HUGE_VAL) most = std::max(most, seconds);
      scale_ += most;
    }
    for (const StrategyEdge& edge : graph.edges) {
      double most = 0;
      for (Seconds seconds : edge.seconds)
        if (seconds < HUGE_VAL) most = std::max(most, seconds);
      scale_ += most;
    }
  }

  StrategyAnswer run() {
    push({});
    if (!open_.empty()) answer_.multiplier = open_.top().multiplier;
    while (!open_.empty() && improves(open_.top().bound) && answer_.work < limits_.work) {
      Branch branch = open_.top();
      open_.pop();
      ++answer_.branches;
      for (bool taken : {true, false}) {
        Branch child{branch.decisions, branch.bound, 0, branch.multiplier};
        child.decisions.push_back({branch.next.node, branch.next.option, taken});
        push(std::move(child));
      }
    }
    answer_.proved = open_.empty() || !improves(open_.top().bound);
    answer_.largest_table = elimination_.largest();
    if (answer_.best) answer_.bound = answer_.proved ? best_ : std::min(best_, open_.top().bound);
    return std::move(answer_);
  }

 private:
  // A millionth of a millionth of all there is to add up is rounding.
  bool improves(double bound) const { return bound < best_ - 1e-12 * scale_; }

  void push(Branch branch) {
    bool root = branch.decisions.empty();
    seconds_.clear();
    for (const StrategyNode& node : graph_.nodes) seconds_.push_back(node.seconds);
    for (const Decision& decision : branch.decisions) {
      std::vector<double>& node = seconds_[decision.node];
      for (size_t k = 0; k < node.size(); ++k)
        if ((static_cast<int32_t>(k) == decision.option) != decision.taken) node[k] = HUGE_VAL;
    }
    proposals_.clear();
    std::optional<ResourcePrices> prices = bound(branch.multiplier);
    if (!prices) return;
    branch.bound = root ? prices->bound : std::max(branch.bound, prices->bound);
    branch.multiplier = prices->multiplier;
    branch.number = number_++;
    if (!improves(branch.bound) || !pick(*prices, branch.next)) return;
    open_.push(std::move(branch));
  }

  Proposal propose(std::span<const double> multiplier, bool with_seconds) {
    std::vector<std::vector<double>> cost = seconds_;
    for (size_t v = 0; v < cost.size(); ++v)
      for (size_t k = 0; k < cost[v].size(); ++k) {
        if (!with_seconds && cost[v][k] < HUGE_VAL) cost[v][k] = 0;
        for (size_t m = 0; m < multiplier.size(); ++m)
          cost[v][k] += multiplier[m] * static_cast<double>(graph_.nodes[v].bytes[k][m]);
      }
    Eliminated eliminated = elimination_.run(cost, with_seconds);
    answer_.work += elimination_.work();
    StrategyChoice choice = measure(graph_, eliminated.option);
    Proposal proposal{eliminated.bound, choice.seconds, choice.bytes,
                      static_cast<int32_t>(proposals_.size())};
    keep(std::move(choice));
    proposals_.push_back(std::move(eliminated.option));
    return proposal;
  }

  // Without capacities and with exact tables a proposal is the best there is; else it may leave room.
  void keep(StrategyChoice choice) {
    if (!fits(graph_, choice) || choice.seconds == HUGE_VAL) return;
    bool near = choice.seconds < best_ * (1 + kNear);
    if (near && (!graph_.capacity.empty() || !elimination_.exact()))
      choice = polish(graph_, std::move(choice));
    if (!(choice.seconds < best_)) return;
    best_ = choice.seconds;
    answer_.best = std::move(choice);
  }

  std::optional<ResourcePrices> bound(const std::vector<double>& hint) {
    Proposal free = propose(std::vector<double>(graph_.capacity.size(), 0.0), true);
    if (free.value == HUGE_VAL) return std::nullopt;
    if (graph_.capacity.empty() || free.seconds == HUGE_VAL)
      return ResourcePrices{
          std::vector<double>(graph_.capacity.size(), 0.0), free.value, {{free.number, 1.0}}};
    auto oracle = [this](std::span<const double> multiplier, bool with_seconds) {
      Proposal proposal = propose(multiplier, with_seconds);
      // Near the cheapest, but with a pair that is not allowed: it stands for what it might have been.
      if (proposal.seconds == HUGE_VAL) proposal.seconds = scale_;
      return proposal;
    };
    return find_prices(oracle, graph_.capacity, scale_, hint);
  }

  bool open(int32_t node) const {
    return std::count_if(seconds_[node].begin(), seconds_[node].end(),
                         [](double s) { return s < HUGE_VAL; }) > 1;
  }

  /// The node on which the relaxed solution is least decided; where it is decided, one whose sums were
  /// minimised apart. False: all are decided.
  bool pick(const ResourcePrices& prices, Decision& next) const {
    double least = 2;
    for (int32_t v = 0; v < static_cast<int32_t>(graph_.nodes.size()); ++v) {
      if (!open(v)) continue;
      std::vector<double> share(seconds_[v].size());
      for (const auto& [number, part] : prices.shares) share[proposals_[number][v]] += part;
      int32_t option = -1;
      for (int32_t k = 0; k < static_cast<int32_t>(share.size()); ++k)
        if (seconds_[v][k] < HUGE_VAL && (option < 0 || share[k] > share[option])) option = k;
      bool cut =
          std::find(elimination_.cut().begin(), elimination_.cut().end(), v) != elimination_.cut().end();
      double decided = share[option] - (cut ? 1e-3 : 0);
      if (decided >= least) continue;
      least = decided;
      next = {v, option};
    }
    return least < 2;
  }

  const StrategyGraph& graph_;
  StrategyLimits limits_;
  Elimination elimination_;
  double scale_ = 0;  // the most any choice can take
  double best_ = HUGE_VAL;
  std::priority_queue<Branch> open_;
  int64_t number_ = 0;
  std::vector<std::vector<double>> seconds_;     // of nodes, with what the branch rules out
  std::vector<std::vector<int32_t>> proposals_;  // of the branch
  StrategyAnswer answer_;
};

}  // namespace

StrategyAnswer branch_and_bound(const StrategyGraph& graph, const StrategyLimits& limits) {
  return BranchAndBound(graph, limits).run();
}

}  // namespace partita::choose
