#include "search/climb.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "search/neighbours.h"

namespace partita {
namespace {

/// Plans to start from, and how many ways and steps are tried from each.
constexpr size_t kSeeds = 6, kNeighbours = 24;
constexpr int kSteps = 8;

RecipeSpec plain_spec(RecipeSpec spec) {
  spec.zero = 0;
  spec.recompute = false;
  return spec;
}

/// What a recipe cannot be below, however its parameters are stored and whatever is computed again.
Seconds least_seconds(const CostBook& book, const RecipeSpec& spec) {
  RecipeSpec kept = plain_spec(spec);
  Seconds least = HUGE_VAL;
  for (kept.zero = 0; kept.zero <= (spec.dp > 1 ? 3 : 0); ++kept.zero)
    least = std::min(least, Estimator(book).bound_as_written(kept));
  return least;
}

/// Of those whose neighbours are cheap to judge: what may come to most first; of one recipe the fastest, and after those of all recipes the smallest, from
/// which the way is the same whatever the limit.
std::vector<Candidate> seeds_of(const Judging& judging, const CostBook& book) {
  std::vector<std::pair<Seconds, const Candidate*>> order;
  for (const Candidate& candidate : judging.judged()) {
    if (!candidate.fits || (candidate.plan.recompute.empty() && candidate.plan.store.empty())) continue;
    if (!judging.cheap(candidate.spec)) continue;
    Seconds bound = least_seconds(book, candidate.spec);
    if (bound < judging.best()) order.emplace_back(bound, &candidate);
  }
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
    return std::pair(a.first, a.second->step_seconds) < std::pair(b.first, b.second->step_seconds);
  });
  std::map<std::string, const Candidate*> smallest;
  std::vector<std::string> seen;
  std::vector<Candidate> seeds;
  for (const auto& [bound, candidate] : order) {
    std::string recipe = summary(plain_spec(candidate->spec));
    auto [known, fresh] = smallest.try_emplace(recipe, candidate);
    if (candidate->worst_peak() < known->second->worst_peak()) known->second = candidate;
    if (!fresh || seeds.size() == kSeeds) continue;
    seeds.push_back(*candidate);
    seen.push_back(std::move(recipe));
  }
  for (size_t i = 0; i < seen.size(); ++i)
    if (smallest[seen[i]]->plan != seeds[i].plan) seeds.push_back(*smallest[seen[i]]);
  return seeds;
}

/// Goes on to the fastest neighbour that fits; false where none is faster.
bool step(Judging& judging, const CostBook& book, const Freedom& freedom, Candidate& seed) {
  bool moved = false;
  for (size_t place : judging.judge_all(neighbours(book.model(), seed.plan, freedom, kNeighbours), seed.spec,
                                        seed.estimated_seconds)) {
    const Candidate& next = judging.judged()[place];
    if (!next.fits || !ranks_before(next, seed)) continue;
    seed = next;
    moved = true;
  }
  return moved;
}

}  // namespace

void climb(Judging& judging, const CostBook& book, const Freedom& freedom) {
  for (Candidate& seed : seeds_of(judging, book))
    for (int steps = 0; steps < kSteps && !judging.stopped() && step(judging, book, freedom, seed);)
      ++steps;
}

}  // namespace partita
