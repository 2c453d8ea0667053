// choose_campaign random COUNT [SEED]     small problems against enumeration of every choice
// choose_campaign speed [SEED]            large ones: gap and CPU seconds
#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <ctime>

#include "choose/least_budget.h"
#include "choose_problems.h"
#include "number_at.h"

namespace partita::choose {
namespace {

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

/// Where only what is faster than a limit is looked for.
std::string compare_below(const ChoiceProblem& problem, Seconds best) {
  ChoiceAnswer slower = search_choices(problem, kChoiceWork, 0, best * (1 - 1e-9));
  ChoiceAnswer same = search_choices(problem, kChoiceWork, 0, best * (1 + 1e-9) + 1e-300);
  if (slower.best) return "finds something below the best";
  return same.best && std::abs(same.best->seconds - best) <= 1e-11 * best ? ""
                                                                          : "misses the best below a limit";
}

/// "" or what is wrong.
std::string compare(const ChoiceProblem& problem) {
  Enumeration truth = enumerate_choices(problem);
  ChoiceAnswer answer = search_choices(problem);
  LeastBudget least = least_budget(problem);
  if (!answer.proved) return "is not proved";
  if (least.bytes != truth.least_peak || !least.proved)
    return fmt::format("least budget {}, enumeration says {}", least.bytes, truth.least_peak);
  if (measure(problem, least.counts).worst_peak() != least.bytes) return "the least budget has no witness";
  if (answer.best.has_value() != (truth.seconds >= 0)) return "one says that nothing fits";
  if (!answer.best) return "";
  if (answer.best->worst_peak() > problem.budget) return "over the budget";
  double off = std::abs(answer.best->seconds - truth.seconds);
  if (off > 1e-11 * std::max(truth.seconds, 1e-300))
    return fmt::format("{} seconds, enumeration says {}", answer.best->seconds, truth.seconds);
  if (answer.relaxed_bound > truth.seconds * (1 + 1e-11) || answer.gap() != 0) return "a bound too high";
  return compare_below(problem, answer.best->seconds);
}

int random_cases(uint64_t count, uint64_t seed) {
  uint64_t wrong = 0, fit = 0;
  for (uint64_t i = 0; i < count; ++i) {
    std::mt19937_64 random(seed + i);
    ChoiceProblem problem = random_problem(random);
    std::string said = compare(problem);
    fit += least_budget(problem).bytes <= problem.budget;
    if (!said.empty() && ++wrong <= 10) fmt::print("seed {}: {}\n", seed + i, said);
  }
  fmt::print("{} problems from seed {}, {} of them with a choice that fits: {} wrong\n", count, seed, fit,
             wrong);
  return wrong > 0 || fit == 0 || fit == count;
}

struct Large {
  const char* what;
  ModelShape shape;
  double seconds;  // of CPU, at most
};

constexpr double kGap = 1e-4;
constexpr Large kLarge[] = {
    {"2400 operators x 9 options, all unlike", {2400, 9, 1}, 0.05},
    {"2400 operators x 9 options, 48 alike", {2400, 9, 48}, 0.05},
    {"2400 operators x 9 options, transients", {2400, 9, 1, true}, 0.1},
    {"2400 operators x 9 options, level", {2400, 9, 1, false, true}, 0.05},
    {"576 operators x 5 options, all unlike", {576, 5, 1}, 0.05},
    {"96 operators x 5 options, all unlike", {96, 5, 1}, 0.05},
    {"96 operators x 5 options, transients", {96, 5, 1, true}, 0.05},
    {"96 operators x 5 options, level", {96, 5, 1, false, true}, 0.05},
    {"24 operators x 3 options, level", {24, 3, 1, false, true}, 0.05},
};

int speed(uint64_t seed) {
  bool good = true;
  for (const Large& large : kLarge)
    for (double fullness : {0.1, 0.5, 0.9}) {
      ChoiceProblem problem = model_problem(large.shape, fullness, seed);
      double start = cpu_seconds();
      ChoiceAnswer answer = search_choices(problem);
      double spent = cpu_seconds() - start;
      bool fast = spent < large.seconds && answer.best && answer.gap() <= kGap;
      double to_relaxed = answer.best ? answer.best->seconds / answer.relaxed_bound - 1 : HUGE_VAL;
      fmt::print("{:<42} {:.0f} % full: {:.2f} ms, gap {:.2g}, {:.2g} over the relaxation, work {}{}\n",
                 large.what, 100 * fullness, 1e3 * spent, answer.gap(), to_relaxed, answer.work,
                 fast ? "" : "  NOT MET");
      good &= fast;
    }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace partita::choose

int main(int argc, char** argv) {
  using namespace partita::choose;
  auto number = [&](int at, uint64_t fallback) { return number_at(argc, argv, at, fallback); };
  if (argc > 1 && std::strcmp(argv[1], "random") == 0) return random_cases(number(2, 1000), number(3, 1));
  if (argc > 1 && std::strcmp(argv[1], "speed") == 0) return speed(number(2, 1));
  fmt::print("choose_campaign random COUNT [SEED] | speed [SEED]\n");
  return 2;
}
