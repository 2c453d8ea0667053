#include "choose/problem.h"

#include <algorithm>

#include "base/error.h"

namespace partita::choose {

Bytes Choice::worst_peak() const { return *std::max_element(peak.begin(), peak.end()); }

Choice measure(const ChoiceProblem& problem, ChoiceCounts counts) {
  Choice choice{.peak = problem.held};
  std::vector<Bytes> transient(problem.moments());
  CHECK_EQ(counts.size(), problem.operators.size());
  for (size_t i = 0; i < counts.size(); ++i) {
    const ChoiceOperator& op = problem.operators[i];
    int64_t taken = 0;
    for (size_t j = 0; j < op.options.size(); ++j) {
      const ChoiceOption& option = op.options[j];
      int64_t count = counts[i][j];
      if (count == 0) continue;
      taken += count;
      choice.seconds += option.seconds * static_cast<double>(count);
      for (size_t t = 0; t < problem.moments(); ++t) {
        choice.peak[t] += option.bytes[t] * count;
        transient[t] = std::max(transient[t], option.transient[t]);
      }
    }
    CHECK_EQ(taken, op.count);
  }
  for (size_t t = 0; t < problem.moments(); ++t) choice.peak[t] += transient[t];
  size_t worst = std::max_element(choice.peak.begin(), choice.peak.end()) - choice.peak.begin();
  choice.transient = transient[worst];
  choice.counts = std::move(counts);
  return choice;
}

}  // namespace partita::choose
