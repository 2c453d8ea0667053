#include "choose/sweep.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "choose/least_budget.h"

namespace partita::choose {
namespace {

double rate(const ChoiceProblem& problem, Seconds seconds) {
  return seconds > 0 ? problem.samples / seconds : HUGE_VAL;
}

}  // namespace

Sweep sweep_choices(const std::vector<ChoiceProblem>& problems, int64_t work) {
  Sweep sweep{.entries = std::vector<SweepEntry>(problems.size())};
  // The relaxation alone, to begin with the most promising batch.
  for (size_t b = 0; b < problems.size(); ++b) sweep.entries[b].answer = search_choices(problems[b], 0);
  std::vector<size_t> order(problems.size());
  std::iota(order.begin(), order.end(), 0);
  auto promise = [&](size_t b) { return rate(problems[b], sweep.entries[b].answer.relaxed_bound); };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return promise(a) > promise(b); });
  double most = 0;
  for (size_t b : order) {
    SweepEntry& entry = sweep.entries[b];
    bool hopeless = sweep.best >= 0 && entry.answer.best && promise(b) < most;
    if (hopeless) continue;
    entry.answer = search_choices(problems[b], work);
    entry.solved = true;
    if (!entry.answer.best) {
      LeastBudget least = least_budget(problems[b], work);
      entry.least_bytes = least.bytes;
      entry.least_proved = least.proved;
      continue;
    }
    double now = rate(problems[b], entry.answer.best->seconds);
    auto index = static_cast<int>(b);
    if (sweep.best < 0 || now > most || (now == most && index < sweep.best)) {
      most = now;
      sweep.best = index;
    }
  }
  return sweep;
}

}  // namespace partita::choose
