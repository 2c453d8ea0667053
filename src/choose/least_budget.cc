#include "choose/least_budget.h"

#include <algorithm>

#include "choose/table.h"
#include "choose/thresholds.h"

namespace partita::choose {
namespace {

Bytes peak_of(const ChoiceProblem& problem, const Folded& folded, const OptionCounts& counts,
              ChoiceCounts& unfolded) {
  unfolded = unfold(folded, problem, counts);
  return measure(problem, unfolded).worst_peak();
}

/// Every class at its fewest bytes at moment t among the options within `most`.
OptionCounts fewest(const Folded& folded, const std::vector<int64_t>& most, int t) {
  Table table = restrict(folded.table, most);
  OptionCounts counts(folded.table.seconds.size());
  for (const TableClass& cls : table.classes) {
    int32_t best = cls.first;
    for (int32_t j = cls.first; j < cls.last; ++j)
      if (table.bytes_of(j)[t] < table.bytes_of(best)[t]) best = j;
    counts[table.origin[best]] = cls.count;
  }
  return counts;
}

/// One moment: options taken in by ascending transient, each class at its fewest bytes so far; the least of
/// sum + threshold is exact.
int64_t best_threshold(const Table& table) {
  std::vector<int32_t> order, cls_of(table.seconds.size());
  for (size_t c = 0; c < table.classes.size(); ++c)
    for (int32_t j = table.classes[c].first; j < table.classes[c].last; ++j) {
      cls_of[j] = static_cast<int32_t>(c);
      order.push_back(j);
    }
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return table.transient[a] < table.transient[b]; });
  std::vector<int64_t> least(table.classes.size(), -1);
  size_t without = least.size();
  int64_t sum = 0, best = INT64_MAX, threshold = 0;
  for (int32_t j : order) {
    int64_t& now = least[cls_of[j]];
    int64_t count = table.classes[cls_of[j]].count;
    if (now < 0) {
      --without;
      now = table.bytes[j];
      sum += now * count;
    } else if (table.bytes[j] < now) {
      sum += (table.bytes[j] - now) * count;
      now = table.bytes[j];
    }
    if (without == 0 && sum + table.transient[j] < best) {
      best = sum + table.transient[j];
      threshold = table.transient[j];
    }
  }
  return threshold;
}

/// The same problem with bytes in place of seconds: whether something fits is then found near the fewest.
ChoiceProblem weighed(const ChoiceProblem& problem) {
  ChoiceProblem out = problem;
  for (ChoiceOperator& op : out.operators)
    for (ChoiceOption& option : op.options) {
      option.seconds = 0;
      for (Bytes bytes : option.bytes) option.seconds += static_cast<double>(bytes);
    }
  return out;
}

/// Several moments: halve the range of budgets.
LeastBudget bisect(const ChoiceProblem& problem, const Folded& folded, int64_t work) {
  ChoiceProblem trial = weighed(problem);
  LeastBudget least{.bytes = INT64_MAX};
  Thresholds thresholds = thresholds_of(folded.table);
  std::vector<int64_t> all = highest(thresholds, whole(thresholds));
  Bytes low = 0;
  for (int t = 0; t < folded.table.moments; ++t) {
    ChoiceCounts counts;
    OptionCounts at_moment = fewest(folded, all, t);
    Bytes peak = peak_of(problem, folded, at_moment, counts);
    if (peak < least.bytes) least = {peak, true, counts};
    Bytes sum = problem.held[t];
    for (size_t j = 0; j < at_moment.size(); ++j)
      sum += at_moment[j] * folded.table.bytes_of(static_cast<int32_t>(j))[t];
    low = std::max(low, sum);
  }
  while (low < least.bytes) {
    trial.budget = low + (least.bytes - low) / 2;
    ChoiceAnswer answer = search_choices(trial, work);
    if (answer.best) {
      least = {answer.best->worst_peak(), least.proved, answer.best->counts};
    } else {
      least.proved = least.proved && answer.proved;
      low = trial.budget + 1;
    }
  }
  return least;
}

}  // namespace

LeastBudget least_budget(const ChoiceProblem& problem, int64_t work) {
  Folded folded = fold(problem);
  if (folded.table.moments > 1) return bisect(problem, folded, work);
  LeastBudget least;
  least.bytes = peak_of(problem, folded, fewest(folded, {best_threshold(folded.table)}, 0), least.counts);
  return least;
}

}  // namespace partita::choose
