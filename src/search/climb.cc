#include "search/climb.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "search/neighbours.h"
#include "search/slicing.h"

namespace partita::search {
namespace {

/// Plans to start from, and how many ways and steps are tried from each.
constexpr size_t kSeeds = 6, kNeighbours = 24;
constexpr int kSteps = 8;
/// How much too large a plan may be that is made smaller.
constexpr double kLittleMore = 1.25;
/// Recipes that are judged although they should be too large.
constexpr size_t kLarger = 16;

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
  std::vector<Plan> plans = neighbours(book.model(), seed.plan, freedom, kNeighbours);
  for (Plan& plan : fewer_slices(seed.plan)) plans.push_back(std::move(plan));
  std::vector<size_t> places = judging.judge_all(std::move(plans), seed.spec, seed.estimated_seconds);
  for (size_t place : places) {
    const Candidate& next = judging.judged()[place];
    if (!next.fits || !ranks_before(next, seed)) continue;
    if (!best || gain(seed, next, thrifty) > gain(seed, *best, thrifty)) best = &next;
  }
  if (best) seed = *best;
  return best != nullptr;
}

/// Those that need little too much, of each recipe the fastest, and then the smallest, from which least is
/// missing; these first where nothing fits.
std::vector<Candidate> nearly_fitting(const Judging& judging, const Freedom& freedom) {
  std::vector<const Candidate*> order;
  for (const Candidate& candidate : judging.judged())
    if (!candidate.fits && judging.cheap(candidate.spec) && candidate.step_seconds < judging.best() &&
        static_cast<double>(candidate.worst_peak()) < kLittleMore * static_cast<double>(freedom.memory))
      order.push_back(&candidate);
  std::stable_sort(order.begin(), order.end(), [](auto* a, auto* b) { return ranks_before(*a, *b); });
  std::vector<std::pair<const Candidate*, const Candidate*>> starts;  // fastest, smallest
  std::map<std::string, size_t> place;
  for (const Candidate* candidate : order) {
    auto [known, fresh] = place.try_emplace(summary(plain_spec(candidate->spec)), starts.size());
    if (fresh) starts.emplace_back(candidate, candidate);
    const Candidate*& smallest = starts[known->second].second;
    if (candidate->worst_peak() < smallest->worst_peak()) smallest = candidate;
  }
  starts.resize(std::min(starts.size(), kSeeds));
  std::vector<Candidate> fastest, smallest;
  for (const auto& [fast, small] : starts) {
    fastest.push_back(*fast);
    if (small != fast) smallest.push_back(*small);
  }
  std::vector<Candidate>& first = judging.best() == HUGE_VAL ? smallest : fastest;
  std::vector<Candidate>& then = judging.best() == HUGE_VAL ? fastest : smallest;
  first.insert(first.end(), then.begin(), then.end());
  return std::move(first);
}

/// Bytes over the limit, of all devices together: one module more computed again helps one of them.
Bytes excess(const Candidate& candidate, const Freedom& freedom) {
  Bytes sum = 0;
  for (Bytes peak : candidate.peak_bytes) sum += std::max<Bytes>(peak - freedom.memory, 0);
  return sum;
}

std::vector<Plan> smaller_plans(Judging& judging, const CostBook& book, const Freedom& freedom,
                                const Candidate& from) {
  std::vector<int32_t> over;
  for (size_t rank = 0; rank < from.peak_bytes.size(); ++rank)
    if (from.peak_bytes[rank] > freedom.memory) over.push_back(static_cast<int32_t>(rank));
  std::vector<Plan> plans = thriftier(book.model(), from.plan, freedom, over, kNeighbours);
  if (freedom.slices)
    for (Plan& plan : more_slices(book.model(), judging.recipes(), from.plan))
      plans.push_back(std::move(plan));
  return plans;
}

/// Goes on to what saves most bytes for a second and still does not fit: what fits is judged by the way, and
/// may not be the best that the way leads to. False where all fit, or nothing saves any.
bool step_down(Judging& judging, const CostBook& book, const Freedom& freedom, Candidate& here) {
  const Candidate* best = nullptr;
  double most = 0;
  std::vector<size_t> places =
      judging.judge_all(smaller_plans(judging, book, freedom, here), here.spec, here.estimated_seconds);
  for (size_t place : places) {
    const Candidate& next = judging.judged()[place];
    auto saved = static_cast<double>(excess(here, freedom) - excess(next, freedom));
    double rate = saved / std::max(next.step_seconds - here.step_seconds, here.step_seconds / 1e6);
    if (next.fits || rate <= most) continue;
    best = &next, most = rate;
  }
  if (best) here = *best;
  return best != nullptr;
}

}  // namespace

void descend(Judging& judging, const CostBook& book, const Freedom& freedom) {
  judging.judge_larger(kLittleMore, kLarger);
  for (Candidate here : nearly_fitting(judging, freedom))
    for (int steps = 0; steps < kSteps && here.step_seconds < judging.best(); ++steps)
      if (!step_down(judging, book, freedom, here)) break;
}

// Whoever takes what saves most at once may be left without room for the rest; whoever takes what saves most
// for a byte goes the same way under every limit, as far as it leads.
void climb(Judging& judging, const CostBook& book, const Freedom& freedom) {
  for (const Candidate& seed : seeds_of(judging, book))
    for (bool thrifty : {false, true}) {
      Candidate here = seed;
      for (int steps = 0; steps < kSteps; ++steps)
        if (!step(judging, book, freedom, thrifty, here)) break;
    }
}

}  // namespace partita::search
