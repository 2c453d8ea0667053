#include "choose/graph/free_search.h"

#include <cmath>
#include <list>

#include "base/error.h"
#include "choose/graph/branch.h"
#include "choose/graph/contract.h"
#include "choose/graph/elimination.h"
#include "choose/graph/messages.h"
#include "choose/graph/reduce.h"

namespace partita::choose {
namespace {

constexpr int64_t kPlainWork = 20'000'000;  // numbers in all tables: faster than to narrow first
constexpr int64_t kNearWork = 10'000'000;
constexpr int kSweeps[] = {10, 20, 40, 80, 160};
constexpr double kNearby[] = {1e-10, 1e-6, 1e-4, 1e-3, 3e-3, 1e-2};  // over the bound, as shares of all

/// A graph, contracted and narrowed in turn. What is left of it is the core of the last round.
class Peeled {
 public:
  explicit Peeled(const StrategyGraph& graph) { rounds_.emplace_back(graph); }

  const StrategyGraph& core() const { return rounds_.back().contraction.core(); }
  Seconds settled() const { return settled_ + rounds_.back().contraction.settled(); }
  int64_t work() const { return work_ + rounds_.back().contraction.work(); }

  /// Leaves only these options of the core's nodes; `moved` is the core, its costs moved about.
  void narrow(const StrategyGraph& moved, std::vector<std::vector<int32_t>> kept) {
    StrategyGraph less = keep_only(moved, kept);
    settled_ = settled();
    work_ = work();
    rounds_.back().kept = std::move(kept);
    rounds_.emplace_back(less);
  }

  /// Options for all nodes of the graph.
  std::vector<int32_t> expand(std::vector<int32_t> option) const {
    for (auto round = rounds_.rbegin(); round != rounds_.rend(); ++round) {
      for (size_t v = 0; v < round->kept.size(); ++v) option[v] = round->kept[v][option[v]];
      option = round->contraction.expand(option);
    }
    return option;
  }

 private:
  struct Round {
    explicit Round(const StrategyGraph& graph) : contraction(graph) {}
    Contraction contraction;
    std::vector<std::vector<int32_t>> kept;  // of its core, by the round after it
  };

  std::list<Round> rounds_;
  Seconds settled_ = 0;
  int64_t work_ = 0;
};

class FreeSearch {
 public:
  FreeSearch(const StrategyGraph& graph, const StrategyLimits& limits,
             const std::optional<StrategyChoice>& known)
      : graph_(graph), limits_(limits), peeled_(graph) {
    answer_.best = known;
  }

  StrategyAnswer run() {
    for (int sweeps : kSweeps) {
      if (small()) return settle();
      bound_by_messages(sweeps);
      if (closed()) return finish(true);
    }
    return settle();
  }

 private:
  Seconds known() const { return answer_.best ? answer_.best->seconds : HUGE_VAL; }
  bool closed() const { return answer_.best && answer_.bound >= known() * (1 - 1e-11); }

  bool small() const {
    Elimination elimination(peeled_.core(), limits_.table);
    return elimination.exact() && elimination.work() <= kPlainWork;
  }

  void consider(const std::vector<int32_t>& option) {
    StrategyChoice choice = measure(graph_, peeled_.expand(option));
    if (choice.seconds < known()) answer_.best = std::move(choice);
  }

  void bound_by_messages(int sweeps) {
    Narrowed narrowed = pass_messages(peeled_.core(), sweeps);
    answer_.work += narrowed.work;
    if (narrowed.best.seconds < HUGE_VAL) consider(narrowed.best.option);
    consider_nearest(narrowed);
    // All that is better than the known choice is still there, so the bound is of that, too.
    answer_.bound = std::max(answer_.bound, std::min(narrowed.bound + peeled_.settled(), known()));
    if (answer_.best) peeled_.narrow(narrowed.moved, narrowed.below(known() - peeled_.settled()));
  }

  /// The best choice of the options nearest to paying, as many as tables allow: most often the best of all,
  /// since where the bound is tight a best choice costs nothing over it anywhere.
  void consider_nearest(const Narrowed& narrowed) {
    for (double share : kNearby) {
      std::vector<std::vector<int32_t>> kept =
          narrowed.below(narrowed.bound + share * std::abs(known_or(narrowed)));
      StrategyGraph few = keep_only(narrowed.moved, kept);
      Contraction contraction(few);
      Elimination elimination(contraction.core(), limits_.table);
      answer_.work += contraction.work();
      if (!elimination.exact() || elimination.work() > kNearWork) return;
      answer_.work += elimination.work();
      std::vector<int32_t> option = contraction.expand(eliminated(contraction.core(), elimination));
      for (size_t v = 0; v < option.size(); ++v) option[v] = kept[v][option[v]];
      consider(option);
      if (known() <= (narrowed.bound + peeled_.settled()) * (1 + 1e-11)) return;
    }
  }

  double known_or(const Narrowed& narrowed) const { return answer_.best ? known() : narrowed.bound; }

  static std::vector<int32_t> eliminated(const StrategyGraph& graph, const Elimination& elimination) {
    std::vector<std::vector<double>> cost;
    for (const StrategyNode& node : graph.nodes) cost.push_back(node.seconds);
    return elimination.run(cost).option;
  }

  /// What is left, to the end: exactly where its tables are small, else as far as the work goes.
  StrategyAnswer settle() {
    if (peeled_.settled() == HUGE_VAL) return finish(true);
    StrategyAnswer rest = branch_and_bound(peeled_.core(), limits_);
    answer_.branches = rest.branches;
    answer_.work += rest.work;
    answer_.largest_table = rest.largest_table;
    if (rest.best) consider(rest.best->option);
    if (!rest.proved || !rest.best) {
      // Nothing is left that is better than what was known.
      if (rest.proved) return finish(true);
      answer_.bound = std::max(answer_.bound, std::min(rest.bound + peeled_.settled(), known()));
      return finish(closed());
    }
    return finish(true);
  }

  StrategyAnswer finish(bool proved) {
    answer_.work += peeled_.work();
    answer_.proved = proved;
    if (answer_.best) answer_.bound = proved ? known() : std::min(answer_.bound, known());
    return std::move(answer_);
  }

  const StrategyGraph& graph_;
  StrategyLimits limits_;
  Peeled peeled_;
  StrategyAnswer answer_;
};

}  // namespace

StrategyAnswer search_free(const StrategyGraph& graph, const StrategyLimits& limits,
                           const std::optional<StrategyChoice>& known) {
  CHECK(graph.capacity.empty());
  return FreeSearch(graph, limits, known).run();
}

}  // namespace partita::choose
