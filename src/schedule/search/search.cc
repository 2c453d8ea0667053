#include "schedule/search/search.h"

#include <algorithm>
#include <map>

#include "base/error.h"
#include "schedule/list_schedule.h"
#include "schedule/search/blocks.h"
#include "schedule/search/bound.h"
#include "schedule/search/exact.h"
#include "schedule/search/pace.h"
#include "schedule/search/policies.h"
#include "schedule/search/polish.h"
#include "schedule/search/seeds.h"
#include "schedule/search/shake.h"

namespace partita::schedule {
namespace {

struct Candidate {
  Listed listed;
  std::string origin;
};

// Operations a search may list at effort 1. At least so many passes over the whole: a large problem gets more
// time, not a worse answer.
struct Work {
  int64_t least, per_op;
};
constexpr Work kPasses{320'000, 40}, kReplanPasses{50'000, 2};
// Shares of the work after which the next part of a search begins.
constexpr double kListed = 0.35, kTunedShare = 0.45, kPaced = 0.8;

class Search {
 public:
  Search(const SearchProblem& problem, const Flow& flow, Work passes)
      : problem_(problem),
        flow_(flow),
        back_(reversed(flow)),
        ends_(heads_and_tails(flow)),
        bound_(problem.objective == Objective::kSpan ? span_bound(flow) : makespan_bound(flow, ends_)) {
    ops_ = int64_t(flow.lines.size()) * flow.microbatches;
    budget_ = std::max(passes.least, passes.per_op * ops_);
    for (int i = 1; i < problem.effort; ++i) budget_ *= 3;
  }

  void offer(Listed listed, const std::string& origin) {
    pool_.push_back({std::move(listed), origin});
    std::stable_sort(pool_.begin(), pool_.end(), [&](const Candidate& a, const Candidate& b) {
      return score(a.listed, problem_.objective) < score(b.listed, problem_.objective);
    });
    if (pool_.size() > kPool) pool_.pop_back();
  }

  // List-schedules by `policy`, from the end of the step where `back`.
  void follow(const Policy& policy, const std::string& origin, bool back) {
    spent_ += ops_;
    std::optional<Listed> listed = list_schedule(back ? back_ : flow_, policy);
    if (back) listed = turned(std::move(listed->order));
    accept(std::move(*listed), origin, back ? ", from the end" : "");
  }

  // List-schedules by `policy`; false when not even one micro-batch fits.
  bool list(const Policy& policy, const std::string& origin) {
    spent_ += ops_;
    std::optional<Listed> listed = list_schedule(flow_, policy);
    if (!listed) return false;
    scores_[origin] = score(*listed, problem_.objective);
    offer(std::move(*listed), origin);
    return true;
  }

  bool optimal() const {
    return !pool_.empty() && score(pool_.front().listed, problem_.objective).first <= bound_;
  }
  bool exhausted(double share = 1) const { return double(spent_) >= share * double(budget_); }
  const Flow& back() const { return back_; }

  // Ranks for the reversed pipeline that follow these times of every operation's end.
  std::vector<int64_t> mirrored(const std::vector<int64_t>& ends) const {
    std::vector<int64_t> ranks(ends.rbegin(), ends.rend());
    for (int64_t& rank : ranks) rank = -rank;
    return ranks;
  }

  // Schedules backwards by the ends of `from` and forwards again by the starts of that: steps slide towards
  // each other from both sides, and what was idle inside comes out at the ends.
  Listed justify(const Listed& from, double patience) {
    Listed back = *list_schedule(back_, {.rank = mirrored(from.end), .patience = patience});
    spent_ += 2 * ops_;
    return *list_schedule(flow_, {.rank = mirrored(back.end), .patience = patience});
  }

  // Turns the numbers of paces, first at large and then around the best few, from both ends of the step.
  void pace() {
    struct Tried {
      int64_t makespan;
      Pace pace;
      bool back;
    };
    std::vector<Tried> best;
    Dice dice;
    const int64_t before = spent_, until = int64_t(kPaced * double(budget_));
    while (!optimal() && spent_ < until) {
      const bool wide = best.empty() || spent_ - before < (until - before) / 2;
      const Tried from =
          wide ? Tried{0, draw_pace(flow_, dice), dice.roll(3) > 0} : best[dice.roll(best.size())];
      Pace pace = wide ? from.pace : turned_pace(flow_, from.pace, dice);
      spent_ += ops_;
      Listed listed = *list_schedule(from.back ? back_ : flow_, paced(from.back ? back_ : flow_, pace));
      best.push_back({listed.makespan, pace, from.back});
      std::stable_sort(best.begin(), best.end(),
                       [](const Tried& a, const Tried& b) { return a.makespan < b.makespan; });
      if (best.size() > kPaces) best.pop_back();
      if (listed.makespan > pool_.back().listed.makespan) continue;
      if (from.back) listed = turned(std::move(listed.order));
      accept(std::move(listed), show(pace), from.back ? ", from the end" : "");
    }
  }

  // Visits the pool again and again. The first visits justify as they are; later ones after a shake, or
  // follow the order with many steps moved together. The best is visited every other time.
  void improve() {
    Dice dice;
    for (size_t round = 0; !optimal() && !exhausted(); ++round) {
      const bool first = round < kPool;
      const Candidate& base = pool_[first || round % 2 ? (round / (first ? 1 : 2)) % pool_.size() : 0];
      Listed from = base.listed;
      std::string origin = base.origin;
      if (!first && round % 8 < 5) {
        drifted(from, origin, dice);
        continue;
      }
      if (!first && round % 8 == 5) {
        crossed(from, pool_[dice.roll(pool_.size())].listed, origin, dice);
        continue;
      }
      if (!first) shake(flow_, dice, from.end);
      accept(justify(from, round % 2 ? 0.0 : 1.0), origin, ", justified");
    }
  }

  // Polishes the best few of the pool, each with a share of the work.
  void polish_best(int64_t share) {
    if (ops_ > kPolishable) return;
    std::vector<Candidate> chosen(pool_.begin(), pool_.begin() + std::min(pool_.size(), kPolished));
    for (const Candidate& candidate : chosen) {
      if (optimal()) return;
      Listed better = problem_.objective == Objective::kMakespan
                          ? shorten(flow_, candidate.listed, bound_, share, spent_)
                          : polish(flow_, candidate.listed, {problem_.objective, problem_.objective}, bound_,
                                   share, spent_);
      if (!known(better)) offer(std::move(better), candidate.origin + ", polished");
    }
  }

  // Once the makespan is settled, shortens the spans without losing it.
  void polish_other(int64_t work) {
    if (problem_.objective != Objective::kMakespan || ops_ > kPolishable) return;
    Candidate best = pool_.front();
    Listed better =
        polish(flow_, best.listed, {Objective::kMakespan, Objective::kSpan}, span_bound(flow_), work, spent_);
    if (!known(better)) offer(std::move(better), best.origin + ", polished");
  }

  int64_t budget() const { return budget_; }

  // Small problems: tries to beat the best order, again and again with more width; when the enumeration comes
  // out complete, what is left is optimal.
  void enumerate_small() {
    if (problem_.objective != Objective::kMakespan || ops_ > kEnumerable) return;
    int64_t spent = 0, work = kStates;
    // On a fine grid of times hardly two partial schedules coincide, and enumeration does not come to an end.
    if (pool_.front().listed.makespan > kCoarse) work /= 10;
    for (int i = 3; i < problem_.effort; ++i) work *= 3;
    for (int i = 3; i > problem_.effort; --i) work /= 3;
    // A width that the work cannot fill is the last: the same again would find the same.
    for (size_t width = 300; !optimal() && spent < work && width <= size_t(work); width *= 10) {
      Enumerated found = enumerate(flow_, pool_.front().listed.makespan, width, work, spent);
      if (found.better) {
        offer(std::move(*found.better), "enumeration");
        width /= 10;
      } else if (found.complete) {
        bound_ = pool_.front().listed.makespan;
        certified_ = "exact search";
      }
    }
  }

  // Larger problems: the most promising partial schedules only, from both ends of the step.
  void beam() {
    if (problem_.objective != Objective::kMakespan || ops_ <= kEnumerable) return;
    int64_t states = kBeamSteps / int64_t(flow_.lines.size());
    for (int i = 3; i < problem_.effort; ++i) states *= 3;
    for (int i = 3; i > problem_.effort; --i) states /= 3;
    if (ops_ > kBeamed) return;
    for (const Flow* flow : {&flow_, static_cast<const Flow*>(&back_)}) {
      if (optimal()) return;
      int64_t spent = 0;
      Enumerated found = enumerate(*flow, pool_.front().listed.makespan, kWidest, states, spent);
      if (!found.better) continue;
      offer(flow == &flow_ ? std::move(*found.better) : turned(found.better->order), "beam");
    }
  }

  const HeadTail& ends() const { return ends_; }
  const std::string& certified() const { return certified_; }

  // Device by device one forward more or fewer before the first backward, or a share of the memory from one
  // chunk to another, as long as that helps.
  void tune_policies(const std::vector<NamedPolicy>& policies) {
    std::vector<std::pair<std::pair<int64_t, int64_t>, size_t>> ranked;
    for (size_t i = 0; i < policies.size(); ++i)
      if (auto known = scores_.find(policies[i].name);
          known != scores_.end() && (!policies[i].policy.warmup.empty() || !policies[i].policy.quota.empty()))
        ranked.push_back({known->second, i});
    std::sort(ranked.begin(), ranked.end());
    // Equal scores are most often equal orders.
    ranked.erase(
        std::unique(ranked.begin(), ranked.end(), [](auto& a, auto& b) { return a.first == b.first; }),
        ranked.end());
    for (size_t i = 0; i < std::min(ranked.size(), kTuned); ++i)
      tune(policies[ranked[i].second], ranked[i].first);
  }

  const Candidate& best() const { return pool_.front(); }
  int64_t bound() const { return bound_; }

 private:
  static constexpr size_t kPool = 12, kTuned = 4, kPolished = 3, kPaces = 4;
  static constexpr int64_t kEnumerable = 300, kPolishable = 20'000, kStates = 2'000'000, kCoarse = 1'000;
  static constexpr int64_t kBeamSteps = 8'000'000, kBeamed = 1'500;
  static constexpr size_t kWidest = 2'000;

  void tune(NamedPolicy from, std::pair<int64_t, int64_t> best) {
    for (bool helped = true; helped && !exhausted(kTunedShare) && !optimal();) {
      helped = false;
      for (const Policy& changed : neighbours(from.policy)) {
        if (exhausted(kTunedShare)) return;
        spent_ += ops_;
        Listed listed = *list_schedule(flow_, changed);
        auto now = score(listed, problem_.objective);
        if (now >= best) continue;
        best = now;
        from.policy = changed;
        helped = true;
        offer(std::move(listed), from.name + ", tuned");
      }
    }
  }

  std::vector<Policy> neighbours(const Policy& from) const {
    std::vector<Policy> all;
    if (!from.quota.empty()) move_quota(from, all);
    if (from.warmup.empty()) return all;
    for (int device = 0; device < flow_.devices; ++device) {
      int64_t forward = 0;
      for (int line : flow_.of_device[device])
        if (flow_.lines[line].kind == StepKind::kForward) forward = std::max(forward, flow_.lines[line].cost);
      for (int64_t change : {forward, -forward}) {
        all.push_back(from);
        all.back().warmup[device] += change;
      }
    }
    return all;
  }

  // On every device one micro-batch less of a chunk, and one more of another.
  void move_quota(const Policy& from, std::vector<Policy>& all) const {
    for (int less = 0; less < problem_.chunks; ++less)
      for (int more = 0; more < problem_.chunks; ++more) {
        if (less == more) continue;
        Policy to = from;
        for (size_t i = 0; i < flow_.lines.size(); ++i) {
          if (to.quota[i] == INT32_MAX) continue;
          int chunk = flow_.lines[i].stage / flow_.devices;
          if (chunk == less) to.quota[i] = std::max(1, to.quota[i] - 1);
          if (chunk == more) ++to.quota[i];
        }
        all.push_back(std::move(to));
      }
  }

  // An order of the reversed flow, read from its end.
  Listed turned(FlowOrder order) const {
    const int count = int(flow_.lines.size()), m = flow_.microbatches;
    for (std::vector<Turn>& list : order) {
      std::reverse(list.begin(), list.end());
      for (Turn& op : list) op = {count - 1 - op.line, m - 1 - op.microbatch};
    }
    return retime(flow_, std::move(order));
  }

  bool known(const Listed& listed) const {
    return std::any_of(pool_.begin(), pool_.end(),
                       [&](const Candidate& c) { return c.listed.end == listed.end; });
  }

  void drifted(const Listed& from, const std::string& origin, Dice& dice) {
    Policy policy{.rank = starts_of(flow_, from)};
    for (int64_t turns = 1 + dice.roll(3); turns > 0; --turns) drift(flow_, dice, policy.rank);
    policy.patience = double(dice.roll(3)) / 2;
    spent_ += ops_;
    accept(*list_schedule(flow_, policy), origin, ", drifted");
  }

  // The first micro-batches as in one order, the others as in another that ends with it; from either end.
  void crossed(const Listed& early, const Listed& late, const std::string& origin, Dice& dice) {
    const bool back = dice.roll(2);
    const int m = flow_.microbatches, from = int(dice.roll(m));
    Policy policy{.rank = back ? early.end : starts_of(flow_, early), .patience = double(dice.roll(3)) / 2};
    const std::vector<int64_t> others = back ? late.end : starts_of(flow_, late);
    for (size_t i = 0; i < flow_.lines.size(); ++i)
      for (int k = from; k < m; ++k)
        policy.rank[i * m + k] = others[i * m + k] + early.makespan - late.makespan;
    if (back) policy.rank = mirrored(policy.rank);
    follow(policy, origin.ends_with(", crossed") ? origin : origin + ", crossed", back);
  }

  void accept(Listed listed, const std::string& origin, const char* how) {
    if (score(listed, problem_.objective) >= score(pool_.back().listed, problem_.objective) || known(listed))
      return;
    offer(std::move(listed), origin.ends_with(how) ? origin : origin + how);
  }

  const SearchProblem& problem_;
  const Flow& flow_;
  Flow back_;
  HeadTail ends_;
  int64_t bound_, ops_ = 0, spent_ = 0, budget_ = 0;
  std::string certified_ = "heads, tails and memory";
  std::vector<Candidate> pool_;
  std::map<std::string, std::pair<int64_t, int64_t>> scores_;  // of each policy, for tuning
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
      throw Infeasible(fmt::format("device {} holds at most {}; one micro-batch of its {} chunks needs {}",
                                   device, flow.cap[device], problem.chunks, need));
  }
  bug(__FILE__, __LINE__, "every device holds a micro-batch and yet nothing was scheduled");
}

}  // namespace

namespace {

// A problem with its ticks and lines, and the answer a search of it gives.
struct Setting {
  const SearchProblem& problem;
  Ticks ticks;
  Flow flow;

  explicit Setting(const SearchProblem& p)
      : problem(p),
        ticks(to_ticks(p.costs, p.devices, p.devices * p.chunks, p.microbatches)),
        flow(flow_of(p, ticks)) {}

  Found answer(const Search& search) const {
    const Candidate& best = search.best();
    return {.schedule = to_schedule(flow, best.listed.order, shape_of(problem)),
            .objective = ticks.time(score(best.listed, problem.objective).first),
            .bound = ticks.time(search.bound()),
            .certified = search.certified(),
            .origin = best.origin};
  }
};

}  // namespace

namespace {

// Heads and tails of the reversed flow.
HeadTail mirrored(const HeadTail& ends) {
  return {.head = {ends.tail.rbegin(), ends.tail.rend()}, .tail = {ends.head.rbegin(), ends.head.rend()}};
}

}  // namespace

Found search_schedule(const SearchProblem& problem) {
  Setting setting(problem);
  const Flow& flow = setting.flow;
  Search search(problem, flow, kPasses);
  for (Seed& seed : named_seeds(problem, flow)) {
    Listed listed = retime(flow, std::move(seed.order));
    Policy follow{.rank = starts_of(flow, listed), .patience = 1};
    if (!search.list(follow, seed.name + " followed")) too_small(problem, flow);
    follow.patience = 0;
    search.list(follow, seed.name + " followed at once");
    if (within_caps(flow, listed.order)) search.offer(std::move(listed), seed.name);
  }
  // Forwards even when the first is optimal: the other measure decides among equals.
  std::vector<NamedPolicy> policies = greedy_policies(problem, flow, search.ends());
  std::vector<NamedPolicy> from_end = greedy_policies(problem, search.back(), mirrored(search.ends()));
  for (size_t i = 0; i < policies.size() && !search.exhausted(kListed); ++i) {
    if (!search.list(policies[i].policy, policies[i].name)) too_small(problem, flow);
    if (i < from_end.size() && !search.optimal()) search.follow(from_end[i].policy, from_end[i].name, true);
  }
  search.tune_policies(policies);
  search.enumerate_small();
  search.beam();
  search.pace();
  search.improve();
  search.polish_best(search.budget() / 6);
  search.polish_other(search.budget() / 6);
  return setting.answer(search);
}

Found replan(const SearchProblem& problem, const Schedule& before) {
  Setting setting(problem);
  const Flow& flow = setting.flow;
  Search search(problem, flow, kReplanPasses);
  Listed kept = retime(flow, to_order(flow, before));
  Policy follow{.rank = starts_of(flow, kept), .patience = 1};
  search.list(follow, "kept order followed");
  follow.patience = 0;
  search.list(follow, "kept order followed at once");
  search.offer(std::move(kept), "kept order");
  for (const NamedPolicy& greedy : greedy_policies(problem, flow, search.ends())) {
    if (search.exhausted()) break;
    search.list(greedy.policy, greedy.name);
  }
  search.improve();
  return setting.answer(search);
}

}  // namespace partita::schedule
