#include "search/search.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/parallel.h"
#include "estimate/device_choice.h"
#include "estimate/estimate.h"
#include "search/finalists.h"
#include "search/judging.h"
#include "search/recipes.h"

namespace partita::search {
namespace {

/// Recipes estimated side by side; fixed, so that what is pruned does not depend on the cores. Of a large
/// model fewer, since those that come first let most of the others be left out early.
constexpr size_t kTogether = 64, kTogetherLarge = 8;
/// Estimates made for runners-up after the best is proved, and of a large model.
constexpr int64_t kBeyondProof = 512, kBeyondProofLarge = 64;
/// The share of the best within which choices are good enough of a large model.
constexpr double kEnough = 1e-3;

bool faster(const Estimate& a, const Estimate& b) {
  return std::pair(a.seconds, a.worst_peak()) < std::pair(b.seconds, b.worst_peak());
}

/// All estimates that fit, and the best of each character.
class Leaders {
 public:
  void offer(const Estimate& estimate) {
    auto [known, fresh] = best_.try_emplace(character_of(estimate.spec), estimate.seconds);
    known->second = std::min(known->second, estimate.seconds);
    all_.push_back(estimate);
  }
  /// Fastest first.
  std::vector<Estimate> ranked() const {
    std::vector<Estimate> all = all_;
    std::stable_sort(all.begin(), all.end(), faster);
    return all;
  }
  Seconds best() const { return at(1); }
  /// Of the k-th fastest character; 0 where there are fewer.
  Seconds at(size_t k) const {
    std::vector<Seconds> all;
    for (const auto& [key, seconds] : best_) all.push_back(seconds);
    if (all.size() < k) return 0;
    std::nth_element(all.begin(), all.begin() + static_cast<ptrdiff_t>(k) - 1, all.end());
    return all[k - 1];
  }
  size_t count() const { return best_.size(); }

 private:
  std::map<Character, Seconds> best_;
  std::vector<Estimate> all_;
};

class Search {
 public:
  Search(const Model& model, const SearchRequest& request)
      : request_(request), book_(book_of(model, request)), freedom_(freedom_of(request)) {
    large_ = book_.large();
    if (large_) freedom_.enough = kEnough;
  }

  SearchResult run() {
    try {
      look();
    } catch (const Interrupted&) {
      result_.interrupted = true;
    }
    // Estimates count all communication; what can be hidden is in no bound.
    Seconds least = request_.prices.overlaps() ? least_bound_ : fitting_.best();
    if (fitting_.count() > 0) result_.bound = std::min(open_bound_, least);
    finish();
    return std::move(result_);
  }

 private:
  struct Bounded {
    Seconds bound = 0;
    Seconds hope = 0;  // its estimate if memory were without end; of small models its bound
    RecipeSpec spec;
  };

  void look() {
    phase_ = "estimating recipes";
    walk(bounded(all_recipes(request_, book_)), true);
    phase_ = "estimating recipes within nodes";
    walk(bounded(over_nodes()), false);
    phase_ = "estimating recipes that recompute in part";
    if (memory_is_short() && freedom_.recompute)
      walk(bounded(large_ ? leading_specs() : all_recipes(request_, book_), true), false);
    phase_ = "estimating recipes with modules in pieces";
    if (memory_is_short()) walk(bounded(in_pieces(), freedom_.recompute), false);
    plain_ = plain();
  }

  void show(size_t done, size_t all) const {
    if (request_.progress)
      request_.progress({phase_, static_cast<int64_t>(done), static_cast<int64_t>(all), fitting_.best()});
  }

  /// `parts`: modules may be computed again in part.
  std::vector<Bounded> bounded(std::vector<RecipeSpec> specs, bool parts = false) {
    if (!specs.empty()) show(0, specs.size());
    std::set<CostKey> keys;
    for (const RecipeSpec& spec : specs) keys.insert(book_.key_of(spec));
    book_.measure({keys.begin(), keys.end()});
    if (parts) book_.measure_parts({keys.begin(), keys.end()});
    Estimator estimator(book_);
    std::vector<Bounded> out;
    std::set<std::string> refused;
    for (RecipeSpec& spec : specs) {
      if (const std::string& why = book_.table(book_.key_of(spec)).refused; !why.empty()) {
        if (refused.insert(why).second) result_.refused.push_back(fmt::format("{}: {}", summary(spec), why));
        continue;
      }
      Seconds bound = estimator.bound(spec);
      out.push_back({bound, bound, std::move(spec)});
    }
    if (large_)
      in_parallel(out.size(), request_.threads, [&](size_t i) {
        out[i].hope = std::max(out[i].bound, estimator.unlimited(out[i].spec, freedom_));
      });
    std::stable_sort(out.begin(), out.end(),
                     [](const Bounded& a, const Bounded& b) { return a.hope < b.hope; });
    return out;
  }

  void walk(const std::vector<Bounded>& recipes, bool first) {
    Estimator estimator(book_);
    int64_t beyond_proof = 0;
    if (first) open_bound_ = recipes.empty() ? 0 : HUGE_VAL;
    const size_t together = large_ ? kTogetherLarge : kTogether;
    for (size_t begin = 0; begin < recipes.size(); begin += together) {
      Seconds best = fitting_.best(), kth = fitting_.at(request_.top);
      bool proved = best > 0 && recipes[begin].hope >= best;
      bool enough = kth > 0 && recipes[begin].hope >= kth;
      if (enough || (proved && beyond_proof >= (large_ ? kBeyondProofLarge : kBeyondProof))) {
        result_.pruned += static_cast<int64_t>(recipes.size() - begin);
        return leave_open(recipes, begin);
      }
      size_t count = std::min(together, recipes.size() - begin);
      std::vector<std::optional<Estimate>> made(count);
      Freedom freedom = freedom_;
      if (large_ && kth > 0) freedom.below = kth;
      try {
        in_parallel(count, request_.threads, [&](size_t i) {
          const auto& [bound, hope, spec] = recipes[begin + i];
          bool hopeless = large_ && kth > 0 && (hope >= kth || estimator.overflows(spec, freedom_));
          if (!hopeless) made[i] = estimator.estimate(spec, freedom);
        });
      } catch (const Interrupted&) {
        leave_open(recipes, begin);
        throw;
      }
      for (size_t i = 0; i < count; ++i)
        made[i] && !made[i]->hopeless ? take(*made[i]) : leave_out(recipes[begin + i]);
      if (proved) beyond_proof += static_cast<int64_t>(count);
      show(begin + count, recipes.size());
    }
  }

  void leave_open(const std::vector<Bounded>& recipes, size_t begin) {
    for (size_t i = begin; i < recipes.size(); ++i) open_bound_ = std::min(open_bound_, recipes[i].bound);
  }

  void leave_out(const Bounded& recipe) {
    ++result_.pruned;
    least_bound_ = std::min(least_bound_, recipe.bound);
  }

  void take(const Estimate& estimate) {
    if (!estimate.refused.empty()) return;
    ++result_.evaluated;
    least_bound_ = std::min(least_bound_, estimate.bound);
    if (estimate.fits) {
      fitting_.offer(estimate);
      return;
    }
    beyond_.push_back(estimate);
    std::push_heap(beyond_.begin(), beyond_.end(), less_memory);
    if (beyond_.size() <= kKeptBeyond) return;
    std::pop_heap(beyond_.begin(), beyond_.end(), less_memory);
    beyond_.pop_back();
  }

  static bool less_memory(const Estimate& a, const Estimate& b) {
    return std::pair(a.worst_peak(), a.seconds) < std::pair(b.worst_peak(), b.seconds);
  }

  // Nothing fits, or something is computed twice or cut for memory's sake.
  bool memory_is_short() const {
    if (fitting_.count() == 0) return true;
    Estimate best = fitting_.ranked().front();
    return std::any_of(best.again.begin(), best.again.end(), [](uint8_t way) { return way > 0; }) ||
           best.worst_peak() > freedom_.memory / 10 * 9;
  }

  bool all_again(const Estimate& estimate) const {
    const std::vector<Unit>& units = book_.shrunk().units.all;
    for (size_t u = 0; u < units.size(); ++u)
      if (!units[u].module.empty() && estimate.again[u] != kAgain) return false;
    return true;
  }

  /// The best recipes, then those of least memory.
  std::vector<Estimate> leading() const {
    std::vector<Estimate> out = fitting_.ranked();
    out.resize(std::min(out.size(), kKeptBeyond));
    out.insert(out.end(), beyond_.begin(), beyond_.end());
    return out;
  }

  std::vector<RecipeSpec> leading_specs() const {
    std::vector<RecipeSpec> out;
    for (const Estimate& estimate : leading()) out.push_back(estimate.spec);
    return out;
  }

  /// Leading recipes with what is cut kept within a node.
  std::vector<RecipeSpec> over_nodes() const {
    std::vector<RecipeSpec> out;
    for (const Estimate& estimate : leading())
      if (int64_t replicas = replicas_over_nodes(request_, estimate.spec); replicas > 1) {
        out.push_back(estimate.spec);
        out.back().replicas = replicas;
      }
    return out;
  }

  /// Leading recipes in pieces.
  std::vector<RecipeSpec> in_pieces() const {
    std::vector<Estimate> tried = leading();
    bool last = fitting_.count() == 0 || all_again(tried.front());
    std::vector<RecipeSpec> out;
    for (const Estimate& estimate : tried)
      for (RecipeSpec& spec : search::in_pieces(estimate.spec, freedom_, last))
        out.push_back(std::move(spec));
    return out;
  }

  void finish() {
    std::sort_heap(beyond_.begin(), beyond_.end(), less_memory);
    beyond_.resize(std::min(beyond_.size(), std::max(request_.top, kJudgedBeyond)));
    judge_finalists(book_, request_, freedom_, {fitting_.ranked(), beyond_, plain_}, result_);
    result_.faults.insert(result_.faults.begin(), book_.faults().begin(), book_.faults().end());
  }

  /// Data parallel with everything whole, whatever it needs; nothing where it is forbidden or does not apply.
  std::vector<Estimate> plain() {
    RecipeSpec spec{.dp = request_.ranks(), .optimizer = request_.optimizer};
    Freedom all = freedom_;
    all.memory = INT64_MAX / 4;
    all.recompute = false;
    all.storings.fill(false);
    all.storings[static_cast<int>(Storing::kWhole)] = freedom_.storings[static_cast<int>(Storing::kWhole)];
    bool applies = all.storings[static_cast<int>(Storing::kWhole)] && spec.dp > 1 &&
                   spec.dp <= book_.batch() && !request_.pin_tp && !request_.pin_pp && !request_.pin_dp &&
                   !request_.pin_microbatches;
    if (!applies) return {};
    book_.measure({book_.key_of(spec)});
    if (!book_.table(book_.key_of(spec)).refused.empty()) return {};
    Estimate estimate = Estimator(book_).estimate(spec, all);
    if (!estimate.refused.empty()) return {};
    estimate.fits = estimate.worst_peak() <= freedom_.memory;
    return {estimate};
  }

  /// Over the limit by costs of units: of those kept so many are judged, since bytes may be counted too high.
  static constexpr size_t kKeptBeyond = 16, kJudgedBeyond = 5;

  const SearchRequest& request_;
  CostBook book_;
  Freedom freedom_;
  bool large_ = false;  // estimates take longer, and few of them are judged
  std::string phase_;   // for those who wait
  Leaders fitting_;
  std::vector<Estimate> beyond_;    // a heap: those of least memory, the worst of them first
  std::vector<Estimate> plain_;     // data parallel
  Seconds open_bound_ = HUGE_VAL;   // of recipes that were left out
  Seconds least_bound_ = HUGE_VAL;  // of the others
  SearchResult result_;
};

}  // namespace

SearchResult search(const Model& model, const SearchRequest& request) {
  Interruptible scope(request.stop ? request.stop : interrupt_flag());
  try {
    return Search(model, request).run();
  } catch (const Interrupted&) {
    return {.interrupted = true};  // before it could look at anything
  }
}

}  // namespace partita::search
