// Long campaigns of the schedule search: schedule_campaign gap|folded|uneven|small [COUNT] [SEED].
//   gap     linear and loop placements, m >= 2 P, cap >= P micro-batches: how far from the bound. Exit 1 if a
//   problem
//           without transfers is more than 1 % above it.
//   folded  the same on zigzag and two-way placements: prints the gaps, never fails.
//   uneven  stages within 50 % of the average: beside the best named schedule. Exit 1 if ever worse, or if
//   fewer than
//           90 % are better or a named one is proved optimal.
//   small   every problem with P <= 4, m <= 6, v <= 2 and its caps. Exit 1 if one is not proved optimal.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <string>

#include "schedule/evaluate.h"
#include "schedule/search.h"

namespace partita {
namespace {

double since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
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
  std::string text =
      fmt::format("{} P {} v {} m {} {} I {} W {} c {} cap {}", placement_name(p.placement), p.devices,
                  p.chunks, p.microbatches, p.split ? "split" : "fused", I.str(), W.str(), hop.str(), cap);
  return {p, text};
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

int gap(int count, unsigned seed, const std::vector<Placement>& placements) {
  std::mt19937 random(seed);
  std::map<Rational, Tally> by_hop;
  double total = 0;
  for (int i = 0; i < count; ++i) {
    Drawn drawn = draw_even(random, placements);
    auto start = std::chrono::steady_clock::now();
    Found found = search_schedule(drawn.problem);
    double gap = found.objective.to_double() / found.bound.to_double() - 1;
    total += since(start);
    by_hop[drawn.problem.costs.hop].add(gap);
    if (gap > 0.01)
      fmt::print("{}: gap {:.2f} %, {:.3f} above {:.3f}, from {}\n", drawn.text, 100 * gap,
                 found.objective.to_double(), found.bound.to_double(), found.origin);
  }
  for (const auto& [hop, tally] : by_hop)
    fmt::print("hop {:>4} of a forward: {} of {} above 1 %, worst {:.2f} %\n", hop.str(), tally.over,
               tally.seen, 100 * tally.worst);
  fmt::print("seed {}, {} problems, {:.2f} s each\n", seed, count, total / count);
  return by_hop[0].over;
}

// Names that live on a placement with these chunks, at any cap.
std::vector<std::string> rivals(Placement placement, int chunks) {
  if (chunks == 1) return {"gpipe", "1f1b", "eager-1f1b", "zb-h1", "zb-h2"};
  if (placement == Placement::kLoop) return {"interleaved", "looped-bfs", "interleaved-zb"};
  if (chunks == 2) return {"wave", "zb-v", "v-half", "v-min", "dualpipev"};
  return {"wave"};
}

// Stages of a model cut badly: every cost within 50 % of the average.
Drawn draw_uneven(std::mt19937& random) {
  SearchProblem p;
  p.devices = 2 + int(random() % 15);
  p.microbatches = p.devices * (1 + int(random() % 4)) + int(random() % p.devices);
  p.chunks = std::array{1, 1, 2, 2, 4}[random() % 5];
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
  std::string text =
      fmt::format("{} P {} v {} m {} {} c {} cap {}", placement_name(p.placement), p.devices, p.chunks,
                  p.microbatches, p.split ? "split" : "fused", p.costs.hop.str(), cap);
  return {p, text};
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

int uneven(int count, unsigned seed) {
  std::mt19937 random(seed);
  int better = 0, settled = 0, worse = 0, equal = 0, alone = 0;
  double total = 0;
  for (int i = 0; i < count; ++i) {
    Drawn drawn = draw_uneven(random);
    auto best = best_named(drawn.problem);
    auto start = std::chrono::steady_clock::now();
    Found found = search_schedule(drawn.problem);
    total += since(start);
    if (!best) {
      ++alone;
      continue;
    }
    better += found.objective < best->first;
    worse += found.objective > best->first;
    if (found.objective != best->first) continue;
    bool proved = found.bound == found.objective;
    settled += proved;
    equal += !proved;
    fmt::print("{}: {} also has {}{}\n", drawn.text, best->second, best->first.to_double(),
               proved ? ", which is optimal" : fmt::format(", bound {}", found.bound.to_double()));
  }
  fmt::print(
      "seed {}: of {} problems better in {}, equal where that is proved optimal {}, equal otherwise {}, "
      "worse {}, "
      "no named one fits {}; {:.2f} s each\n",
      seed, count, better, settled, equal, worse, alone, total / count);
  return worse > 0 || (better + settled + alone) * 10 < count * 9;
}

int small(int count) {
  int seen = 0, unproved = 0;
  double total = 0;
  for (int devices = 2; devices <= 4; ++devices)
    for (int chunks = 1; chunks <= 2; ++chunks)
      for (Placement placement : {Placement::kLinear, Placement::kLoop, Placement::kZigzag}) {
        if ((placement == Placement::kLinear) != (chunks == 1)) continue;
        for (int m = 1; m <= 6; ++m)
          for (bool split : {false, true})
            for (int cap = chunks; cap <= std::min(devices * chunks, m * chunks); ++cap) {
              if (++seen > count) continue;
              SearchProblem p{.devices = devices,
                              .microbatches = m,
                              .chunks = chunks,
                              .placement = placement,
                              .costs = uniform_costs({1, 1, 1, 2}, 0, devices * chunks),
                              .cap = std::vector<int64_t>(devices, cap),
                              .split = split};
              auto start = std::chrono::steady_clock::now();
              Found found = search_schedule(p);
              double seconds = since(start);
              total += seconds;
              if (found.bound == found.objective) continue;
              ++unproved;
              fmt::print("{} P {} v {} m {} {} cap {}: {} bound {} {:.1f} s\n", placement_name(placement),
                         devices, chunks, m, split ? "split" : "fused", cap, found.objective.str(),
                         found.bound.str(), seconds);
            }
      }
  fmt::print("{} problems, {} not proved, {:.1f} s\n", std::min(seen, count), unproved, total);
  return unproved;
}

}  // namespace
}  // namespace partita

int main(int argc, char** argv) {
  using partita::Placement;
  std::string what = argc > 1 ? argv[1] : "";
  int count = argc > 2 ? std::atoi(argv[2]) : 200;
  unsigned seed = argc > 3 ? unsigned(std::atoi(argv[3])) : 1;
  if (what == "gap") return partita::gap(count, seed, {Placement::kLinear, Placement::kLoop}) > 0;
  if (what == "folded") return partita::gap(count, seed, {Placement::kZigzag, Placement::kBidirectional}), 0;
  if (what == "uneven") return partita::uneven(count, seed) > 0;
  if (what == "small") return partita::small(count) > 0;
  fmt::print(stderr, "schedule_campaign gap|folded|uneven|small [COUNT] [SEED]\n");
  return 2;
}
