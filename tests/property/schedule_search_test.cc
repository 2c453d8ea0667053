// The search against exhaustive enumeration, against named schedules on uneven stages, and against its bound.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <random>
#include <unordered_set>

#include "base/error.h"
#include "schedule/evaluate.h"
#include "schedule/search/blocks.h"
#include "schedule/search/bound.h"
#include "schedule/search/search.h"
#include "schedule_problems.h"
#include "setting.h"

namespace partita::schedule {
namespace {

// Breadth-first over time steps with whole costs and hops: every device that is free starts any operation it
// may, or idles. Knows nothing of the search: its own state, its own rules.
class BruteForce {
 public:
  BruteForce(const SearchProblem& problem, size_t limit) : problem_(problem), limit_(limit) {
    stages_ = problem.devices * problem.chunks;
    device_ = place(problem.placement, problem.devices, problem.chunks);
    kinds_ = problem.split ? 3 : 2;
    for (const StageCost& stage : problem.costs.stages) {
      const Rational costs[] = {stage.forward, problem.split ? stage.input_grad : stage.backward,
                                stage.weight_grad};
      for (int kind = 0; kind < kinds_; ++kind) cost_.push_back(int(costs[kind].to_double()));
    }
    hop_ = int(problem.costs.hop.to_double());
    counts_ = stages_ * kinds_;
  }

  /// The least makespan; nullopt when there are more states than the limit.
  std::optional<int> run() {
    std::unordered_set<std::string> level{
        std::string(size_t(counts_ * (1 + hop_) + 2 * problem_.devices), '\0')};
    size_t seen = 0;
    for (int time = 0;; ++time) {
      std::unordered_set<std::string> next;
      for (const std::string& state : level) {
        if (done(state)) return time;
        start(state, 0, next);
        if (next.size() > limit_) return std::nullopt;
      }
      seen += next.size();
      if (seen > limit_) return std::nullopt;
      level = std::move(next);
      if (level.empty()) return -1;
    }
  }

 private:
  // Bytes: how many of (stage, kind) have ended; per device what it runs (0: nothing) and for how long still;
  // then the numbers that had ended 1, 2, .. hop steps ago: the last of them have arrived elsewhere.
  int count(const std::string& s, int stage, int kind) const { return s[stage * kinds_ + kind]; }
  int running(const std::string& s, int device) const { return s[counts_ + device]; }
  int arrived(const std::string& s, int stage, int kind, int device) const {
    if (hop_ == 0 || device_[stage] == device) return count(s, stage, kind);
    return s[2 * problem_.devices + counts_ * hop_ + stage * kinds_ + kind];
  }

  bool done(const std::string& s) const {
    for (int i = 0; i < counts_; ++i)
      if (s[i] != problem_.microbatches) return false;
    return true;
  }

  bool may_start(const std::string& s, int stage, int kind) const {
    int k = count(s, stage, kind), device = device_[stage];
    if (k == problem_.microbatches) return false;
    if (kind == 0 && stage > 0 && arrived(s, stage - 1, 0, device) <= k) return false;
    if (kind == 1 && count(s, stage, 0) <= k) return false;
    if (kind == 1 && stage + 1 < stages_ && arrived(s, stage + 1, 1, device) <= k) return false;
    if (kind == 2 && count(s, stage, 1) <= k) return false;
    if (kind != 0) return true;
    int live = 0;
    for (int other = 0; other < stages_; ++other)
      if (device_[other] == device) live += count(s, other, 0) - count(s, other, kinds_ - 1);
    return live < problem_.cap[device];
  }

  void start(const std::string& s, int device, std::unordered_set<std::string>& next) const {
    if (device == problem_.devices) {
      next.insert(advanced(s));
      return;
    }
    start(s, device + 1, next);
    if (running(s, device)) return;
    for (int stage = 0; stage < stages_; ++stage)
      for (int kind = 0; kind < kinds_; ++kind) {
        if (device_[stage] != device || !may_start(s, stage, kind)) continue;
        std::string t = s;
        t[counts_ + device] = char(1 + stage * kinds_ + kind);
        t[counts_ + problem_.devices + device] = char(cost_[stage * kinds_ + kind]);
        start(t, device + 1, next);
      }
  }

  std::string advanced(std::string s) const {
    const int older = counts_ + 2 * problem_.devices;
    for (int i = counts_ * hop_ - 1; i >= 0; --i) s[older + i] = i < counts_ ? s[i] : s[older + i - counts_];
    for (int device = 0; device < problem_.devices; ++device) {
      if (!running(s, device)) continue;
      char& rest = s[counts_ + problem_.devices + device];
      if (--rest > 0) continue;
      ++s[running(s, device) - 1];
      s[counts_ + device] = 0;
    }
    return s;
  }

  const SearchProblem& problem_;
  size_t limit_;
  int stages_, kinds_, hop_, counts_;
  std::vector<int> device_, cost_;  // cost by (stage, kind)
};

TEST(ScheduleSearch, EqualsBruteForceWhereThatIsPossible) {
  const char* states = std::getenv("PARTITA_STATES");
  const size_t limit = states ? size_t(std::atoll(states)) : 20'000;
  int equal = 0, too_many = 0, proved = 0;
  for (const SearchProblem& problem : small_problems()) {
    std::optional<int> least = BruteForce(problem, limit).run();
    if (!least) {
      ++too_many;
      continue;
    }
    Found found = search_schedule(problem);
    ASSERT_EQ(found.objective, Rational(*least))
        << "P " << problem.devices << " m " << problem.microbatches << " v " << problem.chunks << " cap "
        << problem.cap.front() << (problem.split ? " split" : " fused") << " placement "
        << int(problem.placement);
    ASSERT_LE(found.bound, found.objective);
    proved += found.bound == found.objective;
    ++equal;
  }
  std::printf("%d equal, %d of them proved by the search itself, %d beyond %zu states\n", equal, proved,
              too_many, limit);
  EXPECT_GT(equal, 40);
}

// Transfers under caps: the bound alone is never above the optimum, and the search finds it.
TEST(ScheduleSearch, BoundIsNeverAboveBruteForce) {
  const unsigned seed = unsigned(setting("PARTITA_SEED", 1));
  std::mt19937 random(seed);
  int compared = 0, tight = 0;
  for (uint64_t i = 0, count = setting("PARTITA_COUNT", 40); i < count; ++i) {
    SCOPED_TRACE(fmt::format("seed {} case {}", seed, i));
    const int devices = 2 + int(random() % 2), chunks = 1 + int(random() % 2), m = 2 + int(random() % 4);
    const Placement placement = chunks == 1    ? Placement::kLinear
                                : random() % 2 ? Placement::kLoop
                                               : Placement::kZigzag;
    const int cap = chunks + int(random() % (devices * chunks - chunks + 1));
    SearchProblem problem = uniform_problem(placement, devices, chunks, m, random() % 2, cap);
    problem.costs.hop = Rational(int(random() % 3));
    for (StageCost& stage : problem.costs.stages) {
      stage = {1 + int(random() % 2), 1 + int(random() % 2), 1 + int(random() % 2), 0};
      stage.backward = stage.input_grad + stage.weight_grad;
    }
    std::optional<int> least = BruteForce(problem, 60'000).run();
    if (!least) continue;
    const Ticks ticks = to_ticks(problem.costs, devices, devices * chunks, m);
    Schedule shape = blank("search", placement, {.devices = devices, .microbatches = m}, chunks);
    const Rational bound = ticks.time(makespan_bound(make_flow(shape, ticks, problem.split, problem.cap)));
    ASSERT_LE(bound, Rational(*least));
    ASSERT_EQ(search_schedule(problem).objective, Rational(*least));
    tight += bound == Rational(*least);
    ++compared;
  }
  fmt::print("seed {}: {} compared, the bound alone is the optimum in {}\n", seed, compared, tight);
  EXPECT_GT(tight * 2, compared);
}

// Two streams are searched too: never longer than Chimera, BitPipe or DualPipe at the same cap.
TEST(ScheduleSearch, BothWaysNeverWorseThanTheNamedOnes) {
  struct {
    const char* name;
    int chunks;
  } rows[] = {{"chimera", 1}, {"bitpipe", 2}, {"dualpipe", 1}};
  for (const auto& row : rows)
    for (int m : {8, 16}) {
      Schedule named = make_schedule(row.name, {.devices = 4, .microbatches = m});
      SearchProblem problem = uniform_problem(Placement::kBidirectional, 4, row.chunks, m, true, 0);
      problem.costs.hop = Rational(1, 10);
      problem.costs.stages.front().forward = Rational(3, 2);
      Evaluation run = evaluate(named, problem.costs);
      problem.cap = run.peak_memory;
      problem.effort = 1;
      Found found = search_schedule(problem);
      EXPECT_LE(found.objective, run.makespan) << row.name << " m " << m;
      EXPECT_EQ(check(found.schedule), std::vector<std::string>{});
      EXPECT_EQ(evaluate(found.schedule, problem.costs).makespan, found.objective);
    }
}

// Any order, along its critical path: the same operations, within the caps, never longer, and often shorter.
TEST(ScheduleSearch, ShorteningKeepsCapsAndOperations) {
  constexpr unsigned kSeed = 7;
  std::mt19937 random(kSeed);
  int shorter = 0;
  for (int i = 0; i < 60; ++i) {
    SCOPED_TRACE(fmt::format("seed {} case {}", kSeed, i));
    const int devices = 2 + int(random() % 4), chunks = 1 + int(random() % 3), m = 2 + int(random() % 6);
    const bool split = random() % 2;
    Schedule shape = blank("search", chunks == 1 ? Placement::kLinear : Placement::kLoop,
                           {.devices = devices, .microbatches = m}, chunks);
    Costs costs = uniform_costs({}, Rational(int(random() % 3), 10), devices * chunks);
    for (StageCost& stage : costs.stages) {
      stage = {1 + int(random() % 4), 1 + int(random() % 4), 1 + int(random() % 4), 0};
      stage.backward = stage.input_grad + stage.weight_grad;
    }
    const int64_t cap = chunks * (1 + int64_t(random() % devices));
    Flow flow = make_flow(shape, to_ticks(costs, devices, devices * chunks, m), split,
                          std::vector<int64_t>(devices, cap));
    Policy policy{.rank = std::vector<int64_t>(flow.lines.size() * size_t(m))};
    for (int64_t& rank : policy.rank) rank = int64_t(random() % 100);
    Listed from = *list_schedule(flow, policy);
    int64_t spent = 0;
    Listed to = shorten(flow, from, 0, 500'000, spent);
    EXPECT_LE(to.makespan, from.makespan);
    EXPECT_TRUE(within_caps(flow, to.order));
    EXPECT_EQ(retime(flow, to.order).end, to.end);
    for (int d = 0; d < devices; ++d)
      EXPECT_TRUE(std::is_permutation(to.order[d].begin(), to.order[d].end(), from.order[d].begin(),
                                      from.order[d].end()));
    shorter += to.makespan < from.makespan;
  }
  EXPECT_GT(shorter, 20);
}

TEST(ScheduleSearch, SameAnswerTwiceAndReplanKeepsWhatItCanNotImprove) {
  SearchProblem problem = uniform_problem(Placement::kZigzag, 4, 2, 8, true, 6);
  problem.effort = 1;
  Found first = search_schedule(problem), second = search_schedule(problem);
  EXPECT_EQ(first.schedule, second.schedule);
  problem.costs.stages[2].forward = Rational(13, 10);
  Rational kept = evaluate(first.schedule, problem.costs).makespan;
  Found again = replan(problem, first.schedule);
  EXPECT_LE(again.objective, kept);
  EXPECT_EQ(evaluate(again.schedule, problem.costs).makespan, again.objective);
}

// Enumeration that comes to no end within its work is given up: this one was tried again for ever.
TEST(ScheduleSearch, EnumerationOnAFineGridIsGivenUp) {
  SearchProblem problem = uniform_problem(Placement::kLoop, 4, 4, 9, false, 24);
  const int percent[][3] = {{150, 119, 78}, {51, 100, 66}, {55, 129, 112},  {64, 52, 82},
                            {92, 140, 150}, {132, 78, 99}, {64, 81, 132},   {124, 105, 111},
                            {73, 52, 50},   {76, 60, 83},  {111, 122, 131}, {59, 52, 92},
                            {127, 80, 144}, {50, 80, 149}, {126, 95, 147},  {88, 132, 88}};
  for (size_t s = 0; s < problem.costs.stages.size(); ++s) {
    auto [forward, input, weight] = percent[s];
    problem.costs.stages[s] = {forward, input, weight, input + weight};
  }
  Found found = search_schedule(problem);
  EXPECT_LE(found.bound, found.objective);
  EXPECT_EQ(evaluate(found.schedule, problem.costs).makespan, found.objective);
}

TEST(ScheduleSearch, NothingFitsSaysTheLeast) {
  SearchProblem problem = uniform_problem(Placement::kZigzag, 4, 2, 8, true, 1);
  try {
    search_schedule(problem);
    FAIL();
  } catch (const Infeasible& error) {
    EXPECT_STREQ(error.what(), "device 0 holds at most 1; one micro-batch of its 2 chunks needs 2");
  }
}

}  // namespace
}  // namespace partita::schedule
