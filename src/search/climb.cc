#include "search/climb.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "search/neighbours.h"

namespace partita {
namespace {

/// Plans to start from, and how many ways and steps are tried from each.
constexpr size_t kSeeds = 6, kNeighbours = 24;
constexpr int kSteps = 8;
/// How much too large a plan may be that is made smaller.
constexpr double kLittleMore = 1.25;

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

struct Start {
  Seconds bound = 0;
  const Candidate* plan = nullptr;
};

/// The fastest, what may come to most, the next fastest ...
std::vector<Start> in_turns(std::vector<Start> starts) {
  auto by = [&](auto key) {
    std::stable_sort(starts.begin(), starts.end(),
                     [&](const Start& a, const Start& b) { return key(a) < key(b); });
    return starts;
  };
  std::vector<Start> hopeful =
      by([](const Start& one) { return std::pair(one.bound, one.plan->step_seconds); });
  std::vector<Start> fastest =
      by([](const Start& one) { return std::pair(one.plan->step_seconds, one.bound); });
  std::vector<Start> out;
  for (size_t i = 0; i < starts.size(); ++i) {
    out.push_back(fastest[i]);
    out.push_back(hopeful[i]);
  }
  return out;
}

/// Of those whose neighbours are cheap to judge, and that may come to less than the best: of one recipe the
/// one that comes first, and after those of all recipes the smallest, from which the way is the same whatever
/// the limit.
std::vector<Candidate> seeds_of(const Judging& judging, const CostBook& book) {
  std::vector<Start> starts;
  for (const Candidate& candidate : judging.judged()) {
    if (!candidate.fits || (candidate.plan.recompute.empty() && candidate.plan.store.empty())) continue;
    if (!judging.cheap(candidate.spec)) continue;
    Seconds bound = least_seconds(book, candidate.spec);
    if (bound < judging.best()) starts.push_back({bound, &candidate});
  }
  std::map<std::string, const Candidate*> smallest;
  std::vector<std::string> seen;
  std::vector<Candidate> seeds;
  for (const auto& [bound, candidate] : in_turns(std::move(starts))) {
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

/// Seconds saved, or saved for a byte more.
double gain(const Candidate& from, const Candidate& to, bool thrifty) {
  Bytes more = std::max<Bytes>(to.worst_peak() - from.worst_peak(), 1);
  return (from.step_seconds - to.step_seconds) / (thrifty ? static_cast<double>(more) : 1);
}

/// Goes on to the neighbour that fits and gains most; false where none is faster.
bool step(Judging& judging, const CostBook& book, const Freedom& freedom, bool thrifty, Candidate& seed) {
  const Candidate* best = nullptr;
  std::vector<size_t> places = judging.judge_all(neighbours(book.model(), seed.plan, freedom, kNeighbours),
                                                 seed.spec, seed.estimated_seconds);
  for (size_t place : places) {
    const Candidate& next = judging.judged()[place];
    if (!next.fits || !ranks_before(next, seed)) continue;
    if (!best || gain(seed, next, thrifty) > gain(seed, *best, thrifty)) best = &next;
  }
  if (best) seed = *best;
  return best != nullptr;
}

/// Those that need little too much, the fastest first, one of each recipe.
std::vector<Candidate> nearly_fitting(const Judging& judging, const Freedom& freedom) {
  std::vector<const Candidate*> order;
  for (const Candidate& candidate : judging.judged())
    if (!candidate.fits && judging.cheap(candidate.spec) && candidate.step_seconds < judging.best() &&
        static_cast<double>(candidate.worst_peak()) < kLittleMore * static_cast<double>(freedom.memory))
      order.push_back(&candidate);
  std::stable_sort(order.begin(), order.end(), [](auto* a, auto* b) { return ranks_before(*a, *b); });
  std::vector<Candidate> out;
  std::set<std::string> seen;
  for (const Candidate* candidate : order)
    if (out.size() < kSeeds && seen.insert(summary(plain_spec(candidate->spec))).second)
      out.push_back(*candidate);
  return out;
}

/// Goes on to the fastest that fits, else to what saves most bytes for a second; false where it has arrived.
bool step_down(Judging& judging, const CostBook& book, const Freedom& freedom, Candidate& here) {
  const Candidate* best = nullptr;
  double most = 0;
  std::vector<size_t> places = judging.judge_all(thriftier(book.model(), here.plan, freedom, kNeighbours),
                                                 here.spec, here.estimated_seconds);
  for (size_t place : places) {
    const Candidate& next = judging.judged()[place];
    double saved = static_cast<double>(here.worst_peak() - next.worst_peak());
    double rate = saved / std::max(next.step_seconds - here.step_seconds, here.step_seconds / 1e6);
    if (next.fits || rate <= most) continue;
    best = &next, most = rate;
  }
  bool arrived = std::any_of(places.begin(), places.end(), [&](size_t p) { return judging.judged()[p].fits; });
  if (!best || arrived) return false;
  here = *best;
  return true;
}

}  // namespace

void descend(Judging& judging, const CostBook& book, const Freedom& freedom) {
  for (Candidate here : nearly_fitting(judging, freedom))
    for (int steps = 0; steps < kSteps && !judging.stopped() && here.step_seconds < judging.best(); ++steps)
      if (!step_down(judging, book, freedom, here)) break;
}

// Whoever takes what saves most at once may be left without room for the rest; whoever takes what saves most
// for a byte goes the same way under every limit, as far as it leads.
void climb(Judging& judging, const CostBook& book, const Freedom& freedom) {
  for (const Candidate& seed : seeds_of(judging, book))
    for (bool thrifty : {false, true}) {
      Candidate here = seed;
      for (int steps = 0; steps < kSteps && !judging.stopped(); ++steps)
        if (!step(judging, book, freedom, thrifty, here)) break;
    }
}

}  // namespace partita
