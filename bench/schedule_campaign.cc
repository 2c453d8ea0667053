// Long campaigns of the schedule search: schedule_campaign gap|folded|uneven|open|small [COUNT] [SEED].
//   gap     linear and loop placements, m >= 2 P, cap >= P micro-batches: how far from the bound. Exit 1 if a
//           problem without transfers, or with room for more than P micro-batches, is more than 1 % above it.
//   folded  the same on zigzag and two-way placements: prints the gaps, never fails.
//   uneven  stages within 50 % of the average, placement and chunks drawn: beside the best named schedule of
//           them. Exit 1 if ever worse, or if fewer than 90 % are better or a named one is proved optimal.
//   open    device-stages within 50 % that may be cut in 2 or 4: the best of all placements beside the best
//           named schedule of all. Exit 1 if ever worse, or better in fewer than 90 %.
//   small   every problem with P <= 4, m <= 6, v <= 2 and its caps. Exit 1 if one is not proved optimal.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <optional>
#include <random>
#include <string>

#include "schedule/evaluate.h"
#include "schedule/search/search.h"
#include "schedule_problems.h"

namespace partita::schedule {
namespace {

double cpu_seconds() { return double(std::clock()) / CLOCKS_PER_SEC; }

std::string describe(const SearchProblem& p) {
  return fmt::format("{} P {} v {} m {} {}", placement_name(p.placement), p.devices, p.chunks, p.microbatches,
                     p.split ? "split" : "fused");
}

struct Drawn {
  SearchProblem problem;
  std::string text;
};

Drawn draw_even(std::mt19937& random, const std::vector<Placement>& placements) {
  auto pick = [&](auto... values) {
    std::common_type_t<decltype(values)...> all[] = {values...};
    return all[random() % (sizeof...(values))];
  };
  SearchProblem p;
  p.placement = placements[random() % placements.size()];
  p.devices = 2 + int(random() % 15);
  p.chunks = p.placement == Placement::kLinear          ? 1
             : p.placement == Placement::kLoop          ? 2 + int(random() % 3)
             : p.placement == Placement::kBidirectional ? pick(1, 2)
                                                        : pick(2, 4);
  p.microbatches =
      pick(2 * p.devices, 2 * p.devices + int(random() % p.devices), 3 * p.devices, 4 * p.devices);
  if (p.placement == Placement::kBidirectional) p.microbatches += p.microbatches % 2;
  p.split = random() % 2;
  Rational F(1, p.chunks);
  Rational I = F * pick(Rational(1), Rational(6, 5)), W = F * pick(Rational(1), Rational(4, 5));
  Rational hop = pick(Rational(0), Rational(1, 50), Rational(1, 20), Rational(1, 10), Rational(1, 5));
  p.costs = uniform_costs({F, I, W, I + W}, hop, p.devices * p.chunks);
  int cap = pick(p.devices, p.devices, p.devices * 3 / 2, 2 * p.devices);
  p.cap.assign(p.devices, cap * p.chunks);
  return {p, fmt::format("{} I {} W {} c {} cap {}", describe(p), I.str(), W.str(), hop.str(), cap)};
}

// How many of some problems are above 1 %, and the worst.
struct Tally {
  int seen = 0, over = 0;
  double worst = 0;

  void add(double gap) {
    ++seen;
    over += gap > 0.01;
    worst = std::max(worst, gap);
  }
};

// Is a problem one of those that must come within 1 %? Transfers under a cap of just P micro-batches are not:
// there fused optima themselves are above the bound.
bool promised(const SearchProblem& p) {
  return p.costs.hop == Rational(0) || p.cap.front() > int64_t(p.devices) * p.chunks;
}

int gap(int count, unsigned seed, const std::vector<Placement>& placements) {
  std::mt19937 random(seed);
  std::map<std::pair<Rational, const char*>, Tally> tallies;
  Tally kept;
  const double start = cpu_seconds();
  for (int i = 0; i < count; ++i) {
    Drawn drawn = draw_even(random, placements);
    const SearchProblem& p = drawn.problem;
    Found found = search_schedule(p);
    double gap = found.objective.to_double() / found.bound.to_double() - 1;
    tallies[{p.costs.hop, p.split ? "split" : "fused"}].add(gap);
    if (promised(p)) kept.add(gap);
    if (gap > 0.01)
      fmt::print("{}: gap {:.2f} %, {:.3f} above {:.3f}, from {}\n", drawn.text, 100 * gap,
                 found.objective.to_double(), found.bound.to_double(), found.origin);
  }
  int over = 0;
  for (const auto& [key, tally] : tallies) {
    fmt::print("hop {:>4} of a forward, {}: {} of {} above 1 %, worst {:.2f} %\n", key.first.str(),
               key.second, tally.over, tally.seen, 100 * tally.worst);
    over += tally.over;
  }
  fmt::print("without transfers or with room for more than P micro-batches: {} of {} above 1 %\n", kept.over,
             kept.seen);
  fmt::print("seed {}, {} problems, {} above 1 %, {:.2f} s each\n", seed, count, over,
             (cpu_seconds() - start) / count);
  return kept.over;
}

// Names that live on a placement with these chunks, at any cap.
std::vector<std::string> rivals(Placement placement, int chunks) {
  if (chunks == 1) return {"gpipe", "1f1b", "eager-1f1b", "zb-h1", "zb-h2"};
  if (placement == Placement::kLoop) return {"interleaved", "looped-bfs", "interleaved-zb"};
  if (chunks == 2) return {"wave", "zb-v", "v-half", "v-min", "dualpipev"};
  return {"wave"};
}

// Stages of a model cut badly: every cost within 50 % of the average.
Drawn draw_uneven(std::mt19937& random, int chunks = 0) {
  SearchProblem p;
  p.devices = 2 + int(random() % 15);
  p.microbatches = p.devices * (1 + int(random() % 4)) + int(random() % p.devices);
  p.chunks = chunks ? chunks : std::array{1, 1, 2, 2, 4}[random() % 5];
  p.placement = p.chunks == 1 ? Placement::kLinear : random() % 2 ? Placement::kLoop : Placement::kZigzag;
  p.split = random() % 3 != 0;
  auto uneven = [&] { return Rational(50 + int(random() % 101), 100 * p.chunks); };
  p.costs = uniform_costs({}, Rational(int(random() % 4), 20), p.devices * p.chunks);
  for (StageCost& stage : p.costs.stages) {
    stage = {uneven(), uneven(), uneven(), 0};
    stage.backward = stage.input_grad + stage.weight_grad;
  }
  int cap = std::array{p.devices, p.devices * 3 / 2, 2 * p.devices}[random() % 3];
  p.cap.assign(p.devices, cap * p.chunks);
  return {p, fmt::format("{} c {} cap {}", describe(p), p.costs.hop.str(), cap)};
}

bool runs_split(const Schedule& schedule) {
  for (const std::vector<Step>& list : schedule.order)
    for (const Step& step : list)
      if (step.kind == StepKind::kInputGrad) return true;
  return false;
}

// The shortest named schedule within the cap; fused problems have no split rivals.
std::optional<std::pair<Rational, std::string>> best_named(const SearchProblem& p) {
  std::optional<std::pair<Rational, std::string>> best;
  for (const std::string& name : rivals(p.placement, p.chunks)) {
    if (name == "dualpipev" && p.microbatches < 2 * p.devices) continue;
    int cap = name == "wave" ? int(p.cap.front()) : 0;
    Schedule schedule = make_schedule(
        name, {.devices = p.devices, .microbatches = p.microbatches, .chunks = p.chunks, .cap = cap});
    if (!p.split && runs_split(schedule)) continue;
    Evaluation run = evaluate(schedule, p.costs);
    if (*std::max_element(run.peak_memory.begin(), run.peak_memory.end()) > p.cap.front()) continue;
    if (!best || run.makespan < best->first) best = {run.makespan, name};
  }
  return best;
}

// What came of problems beside the named schedules.
struct Verdicts {
  int better = 0, settled = 0, equal = 0, worse = 0, alone = 0;

  void add(const Rational& found, const Rational& bound, const std::optional<Rational>& named) {
    if (!named)
      ++alone;
    else if (found < *named)
      ++better;
    else if (found > *named)
      ++worse;
    else
      ++(bound == found ? settled : equal);
  }
  int seen() const { return better + settled + equal + worse + alone; }
  void print(unsigned seed, double seconds) const {
    fmt::print(
        "seed {}: of {} problems better in {}, equal where that is proved optimal {}, equal otherwise {}, "
        "worse {}, no named one fits {}; {:.2f} s each\n",
        seed, seen(), better, settled, equal, worse, alone, seconds / seen());
  }
};

int uneven(int count, unsigned seed) {
  std::mt19937 random(seed);
  Verdicts verdicts;
  const double start = cpu_seconds();
  for (int i = 0; i < count; ++i) {
    Drawn drawn = draw_uneven(random);
    auto named = best_named(drawn.problem);
    Found found = search_schedule(drawn.problem);
    verdicts.add(found.objective, found.bound, named ? std::optional(named->first) : std::nullopt);
    if (named && found.objective == named->first)
      fmt::print("{}: {} also has {}, bound {}\n", drawn.text, named->second, named->first.to_double(),
                 found.bound.to_double());
  }
  verdicts.print(seed, cpu_seconds() - start);
  return verdicts.worse > 0 || (verdicts.better + verdicts.settled + verdicts.alone) * 10 < count * 9;
}

// A model of device-stages within 50 % of the average that may be cut finer: every placement and chunk count
// takes the same pieces, `chunks` of them to a device.
SearchProblem cut(const SearchProblem& whole, Placement placement, int chunks) {
  SearchProblem p = whole;
  p.placement = placement;
  p.chunks = chunks;
  p.costs.stages.clear();
  const Rational by(1, chunks);
  for (const StageCost& stage : whole.costs.stages)
    for (int piece = 0; piece < chunks; ++piece)
      p.costs.stages.push_back(
          {stage.forward * by, stage.input_grad * by, stage.weight_grad * by, stage.backward * by});
  p.costs.memory.clear();
  for (int64_t& cap : p.cap) cap *= chunks;
  return p;
}

int open_choice(int count, unsigned seed) {
  std::mt19937 random(seed);
  Verdicts verdicts;
  const double start = cpu_seconds();
  for (int i = 0; i < count; ++i) {
    Drawn drawn = draw_uneven(random, 1);
    std::optional<Rational> named, found, bound;
    auto shorten = [](std::optional<Rational>& best, const Rational& value) {
      if (!best || value < *best) best = value;
    };
    for (auto [placement, chunks] : {std::pair{Placement::kLinear, 1},
                                     {Placement::kLoop, 2},
                                     {Placement::kLoop, 4},
                                     {Placement::kZigzag, 2},
                                     {Placement::kZigzag, 4}}) {
      SearchProblem p = cut(drawn.problem, placement, chunks);
      p.effort = 2;
      if (auto best = best_named(p)) shorten(named, best->first);
      Found answer = search_schedule(p);
      shorten(found, answer.objective);
      shorten(bound, answer.bound);
    }
    verdicts.add(*found, *bound, named);
    if (named && *found >= *named)
      fmt::print("{}: a named one has {}, bound {}\n", drawn.text, named->to_double(), bound->to_double());
  }
  verdicts.print(seed, cpu_seconds() - start);
  return verdicts.worse > 0 || verdicts.better * 10 < count * 9;
}

int small(int count) {
  int seen = 0, unproved = 0;
  const double start = cpu_seconds();
  for (const SearchProblem& p : small_problems()) {
    if (seen == count) break;
    ++seen;
    Found found = search_schedule(p);
    if (found.bound == found.objective) continue;
    ++unproved;
    fmt::print("{} cap {}: {} bound {}\n", describe(p), p.cap.front(), found.objective.str(),
               found.bound.str());
  }
  fmt::print("{} problems, {} not proved, {:.1f} s\n", seen, unproved, cpu_seconds() - start);
  return unproved;
}

}  // namespace
}  // namespace partita::schedule

int main(int argc, char** argv) {
  using partita::schedule::Placement;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // a campaign is long: show what it has so far
  std::string what = argc > 1 ? argv[1] : "";
  int count = argc > 2 ? std::atoi(argv[2]) : 200;
  unsigned seed = argc > 3 ? unsigned(std::atoi(argv[3])) : 1;
  if (what == "gap") return partita::schedule::gap(count, seed, {Placement::kLinear, Placement::kLoop}) > 0;
  if (what == "folded")
    return partita::schedule::gap(count, seed, {Placement::kZigzag, Placement::kBidirectional}), 0;
  if (what == "uneven") return partita::schedule::uneven(count, seed) > 0;
  if (what == "open") return partita::schedule::open_choice(count, seed) > 0;
  if (what == "small") return partita::schedule::small(count) > 0;
  fmt::print(stderr, "schedule_campaign gap|folded|uneven|open|small [COUNT] [SEED]\n");
  return 2;
}
