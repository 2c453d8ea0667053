#include "schedule/search.h"

#include <algorithm>

#include "base/error.h"
#include "schedule/bound.h"
#include "schedule/list_schedule.h"
#include "schedule/seeds.h"

namespace partita {
namespace {

// Orders are compared by the objective first and the other measure second.
std::pair<int64_t, int64_t> score(const Listed& listed, Objective objective) {
  if (objective == Objective::kSpan) return {listed.span, listed.makespan};
  return {listed.makespan, listed.span};
}

struct Candidate {
  Listed listed;
  std::string origin;
};

class Search {
 public:
  Search(const SearchProblem& problem, const Flow& flow)
      : problem_(problem), flow_(flow), back_(reversed(flow)),
        bound_(problem.objective == Objective::kSpan ? span_bound(flow) : makespan_bound(flow)) {
    ops_ = int64_t(flow.lines.size()) * flow.microbatches;
    budget_ = 400'000;
    for (int i = 1; i < problem.effort; ++i) budget_ *= 3;
  }

  void offer(Listed listed, const std::string& origin) {
    pool_.push_back({std::move(listed), origin});
    std::stable_sort(pool_.begin(), pool_.end(), [&](const Candidate& a, const Candidate& b) {
      return score(a.listed, problem_.objective) < score(b.listed, problem_.objective);
    });
    if (pool_.size() > kPool) pool_.pop_back();
  }

  // List-schedules by `policy`; false when not even one micro-batch fits.
  bool list(const Policy& policy, const std::string& origin) {
    spent_ += ops_;
    std::optional<Listed> listed = list_schedule(flow_, policy);
    if (!listed) return false;
    offer(std::move(*listed), origin);
    return true;
  }

  bool optimal() const { return !pool_.empty() && score(pool_.front().listed, problem_.objective).first <= bound_; }
  bool exhausted() const { return spent_ >= budget_; }

  // Schedules backwards by the ends of `from` and forwards again by the starts of that: steps slide towards each
  // other from both sides, and what was idle inside comes out at the ends.
  Listed justify(const Listed& from, double patience) {
    const size_t count = flow_.lines.size(), m = flow_.microbatches;
    Policy policy{.rank = std::vector<int64_t>(count * m), .patience = patience};
    for (size_t i = 0; i < count; ++i)
      for (size_t k = 0; k < m; ++k)
        policy.rank[(count - 1 - i) * m + (m - 1 - k)] = from.makespan - from.end[i * m + k];
    Listed back = *list_schedule(back_, policy);
    for (size_t i = 0; i < count; ++i)
      for (size_t k = 0; k < m; ++k)
        policy.rank[i * m + k] = back.makespan - back.end[(count - 1 - i) * m + (m - 1 - k)];
    spent_ += 2 * ops_;
    return *list_schedule(flow_, policy);
  }

  void improve() {
    uint64_t random = 0x9E3779B97F4A7C15u;
    for (size_t round = 0; !optimal() && !exhausted(); ++round) {
      const Candidate& base = pool_[round % pool_.size()];
      Listed from = base.listed;
      std::string origin = base.origin;
      // The first visits justify as they are; later ones after a small shake of the starts.
      if (round >= kPool) shake(from, random);
      Listed better = justify(from, round % 2 ? 0.0 : 1.0);
      if (score(better, problem_.objective) < score(pool_.back().listed, problem_.objective) &&
          !known(better))
        offer(std::move(better), origin + ", justified");
    }
  }

  const Candidate& best() const { return pool_.front(); }
  int64_t bound() const { return bound_; }

 private:
  static constexpr size_t kPool = 12;

  bool known(const Listed& listed) const {
    return std::any_of(pool_.begin(), pool_.end(),
                       [&](const Candidate& c) { return c.listed.end == listed.end; });
  }

  void shake(Listed& listed, uint64_t& random) const {
    int64_t most = 1;
    for (const Flow::Line& line : flow_.lines) most = std::max(most, 2 * line.cost);
    for (int64_t& end : listed.end) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      end += int64_t((random >> 33) % uint64_t(2 * most + 1)) - most;
    }
  }

  const SearchProblem& problem_;
  const Flow& flow_;
  Flow back_;
  int64_t bound_, ops_ = 0, spent_ = 0, budget_ = 0;
  std::vector<Candidate> pool_;
};

Schedule shape_of(const SearchProblem& problem) {
  ScheduleParams params{.devices = problem.devices, .microbatches = problem.microbatches};
  return blank("search", problem.placement, params, problem.chunks);
}

Flow flow_of(const SearchProblem& problem, const Ticks& ticks) {
  std::vector<int64_t> cap = problem.cap;
  if (cap.empty()) cap.assign(problem.devices, INT64_MAX);
  return make_flow(shape_of(problem), ticks, problem.split, cap);
}

[[noreturn]] void too_small(const SearchProblem& problem, const Flow& flow) {
  for (int device = 0; device < flow.devices; ++device) {
    int64_t need = 0;
    for (int line : flow.of_device[device]) need += flow.lines[line].take;
    if (need > flow.cap[device])
      throw Infeasible(fmt::format("device {} holds at most {}; one micro-batch of its {} chunks needs {}", device,
                                   flow.cap[device], problem.chunks, need));
  }
  bug(__FILE__, __LINE__, "every device holds a micro-batch and yet nothing was scheduled");
}

}  // namespace

Found search_schedule(const SearchProblem& problem) {
  Ticks ticks = to_ticks(problem.costs, problem.devices, problem.devices * problem.chunks, problem.microbatches);
  Flow flow = flow_of(problem, ticks);
  Search search(problem, flow);
  for (Seed& seed : named_seeds(problem, flow)) {
    Listed listed = retime(flow, std::move(seed.order));
    Policy follow{.rank = starts_of(flow, listed), .patience = 1};
    if (!search.list(follow, seed.name + " followed")) too_small(problem, flow);
    follow.patience = 0;
    search.list(follow, seed.name + " followed at once");
    if (within_caps(flow, listed.order)) search.offer(std::move(listed), seed.name);
    if (search.optimal()) break;
  }
  if (!search.optimal())
    for (const NamedPolicy& greedy : greedy_policies(problem, flow))
      if (!search.list(greedy.policy, greedy.name)) too_small(problem, flow);
  search.improve();
  const Candidate& best = search.best();
  return {.schedule = to_schedule(flow, best.listed.order, shape_of(problem)),
          .objective = ticks.time(score(best.listed, problem.objective).first),
          .bound = ticks.time(search.bound()),
          .certified = "heads, tails and memory",
          .origin = best.origin};
}

}  // namespace partita
