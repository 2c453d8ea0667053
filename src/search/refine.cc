#include "search/refine.h"

#include <algorithm>
#include <cmath>

namespace partita {
namespace {

/// Recipes that are estimated again.
constexpr size_t kRecipes = 8;
/// Limits below the one that is asked for: a fixed ladder, so that more memory offers what less did.
constexpr int kRungs = 6;
constexpr double kRungsPerDoubling = 8;
/// Bytes may be counted too high as well: by percent.
constexpr int kPercentMore[] = {2, 5, 10};

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
  for (int percent : kPercentMore) {
    out.push_back(freedom);
    out.back().memory += freedom.memory / 100 * percent;
  }
}

}  // namespace

void refine(Judging& judging, const CostBook& book, const Freedom& freedom) {
  std::vector<Freedom> freedoms;
  add_alike(freedom, freedoms);
  add_limits(freedom, freedoms);
  for (const RecipeSpec& spec : best_recipes(judging)) {
    if (!judging.affordable(spec)) continue;
    for (const Freedom& other : freedoms)
      if (Estimate estimate = Estimator(book).estimate(spec, other);
          estimate.fits && estimate.refused.empty())
        judging.add(estimate);
  }
}

}  // namespace partita
