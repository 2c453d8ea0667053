#include "search/refine.h"

#include <algorithm>
#include <cmath>

namespace partita::search {
namespace {

/// Recipes that are estimated again.
constexpr size_t kRecipes = 8;
/// Limits below the one that is asked for: a fixed ladder, so that more memory offers what less did.
constexpr int kRungs = 6;
constexpr double kRungsPerDoubling = 8;
/// Bytes may be counted too high as well: by percent.
constexpr int kPercentMore[] = {2, 4, 6, 8, 10, 12};
/// Seconds of cuts that differ little are estimated to within this.
constexpr double kShiftSlack = 1.03;

/// Those of the best plans, each once.
std::vector<RecipeSpec> best_recipes(const Judging& judging) {
  std::vector<const Candidate*> order;
  for (const Candidate& candidate : judging.judged())
    if (candidate.fits) order.push_back(&candidate);
  std::stable_sort(order.begin(), order.end(), [](auto* a, auto* b) { return ranks_before(*a, *b); });
  std::vector<RecipeSpec> specs;
  std::set<std::string> seen;
  for (const Candidate* candidate : order)
    if (specs.size() < kRecipes && seen.insert(summary(candidate->spec)).second)
      specs.push_back(candidate->spec);
  return specs;
}

void add_alike(const Freedom& freedom, std::vector<Freedom>& out) {
  for (const char* way : {"dp", "zero1", "zero2", "zero3"}) {
    Freedom alike = freedom;
    bool any = false;
    for (const StoringRow& row : kStoringRows) {
      alike.storings[static_cast<int>(row.storing)] &= std::string_view(row.name) == way;
      any = any || alike.storings[static_cast<int>(row.storing)];
    }
    if (any) out.push_back(alike);
  }
}

void add_limits(const Freedom& freedom, std::vector<Freedom>& out) {
  double rung = std::floor(std::log2(static_cast<double>(freedom.memory)) * kRungsPerDoubling);
  for (int k = 0; k < kRungs; ++k) {
    out.push_back(freedom);
    out.back().memory = static_cast<Bytes>(std::exp2((rung - k) / kRungsPerDoubling));
  }
}

void add_more(const Freedom& freedom, std::vector<Freedom>& out) {
  for (int percent : kPercentMore) {
    out.push_back(freedom);
    out.back().memory += freedom.memory / 100 * percent;
  }
}

void estimate_with(Judging& judging, const CostBook& book, const RecipeSpec& spec,
                   const std::vector<Freedom>& freedoms) {
  for (const Freedom& freedom : freedoms)
    if (Estimate estimate = Estimator(book).estimate(spec, freedom);
        estimate.fits && estimate.refused.empty())
      judging.add(estimate);
}

/// Each stage but the first a unit earlier and a unit later.
std::vector<std::vector<int>> shifted(const std::vector<int>& firsts, int units) {
  std::vector<std::vector<int>> out;
  for (size_t s = 1; s < firsts.size(); ++s)
    for (int by : {-1, 1}) {
      int next = s + 1 < firsts.size() ? firsts[s + 1] : units;
      if (firsts[s] + by <= firsts[s - 1] || firsts[s] + by >= next) continue;
      out.push_back(firsts);
      out.back()[s] += by;
    }
  return out;
}

// Even cuts balance seconds; where memory decides what is computed again, another cut may come to less.
void shift_stages(Judging& judging, const CostBook& book, const RecipeSpec& spec, const Freedom& freedom) {
  if (spec.pp == 1 || !judging.cheap(spec)) return;
  Estimator estimator(book);
  Estimate even = estimator.estimate(spec, freedom);
  if (!even.refused.empty()) return;
  for (const std::vector<int>& firsts : shifted(even.firsts, static_cast<int>(even.again.size())))
    if (Estimate other = estimator.estimate(spec, freedom, firsts);
        other.fits && (!even.fits || other.seconds < even.seconds * kShiftSlack))
      judging.add(other);
}

}  // namespace

void refine(Judging& judging, const CostBook& book, const Freedom& freedom,
            const std::vector<Estimate>& beyond) {
  std::vector<Freedom> freedoms, more;
  add_alike(freedom, freedoms);
  add_limits(freedom, freedoms);
  add_more(freedom, freedoms);
  add_more(freedom, more);
  for (const RecipeSpec& spec : best_recipes(judging)) {
    if (!judging.affordable(spec)) continue;
    shift_stages(judging, book, spec, freedom);
    estimate_with(judging, book, spec, freedoms);
  }
  for (const Estimate& estimate : beyond)
    if (judging.cheap(estimate.spec)) estimate_with(judging, book, estimate.spec, more);
}

}  // namespace partita::search
