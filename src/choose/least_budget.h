#pragma once

#include "choose/search.h"

namespace partita::choose {

/// The least budget for which something fits, with a choice that does.
struct LeastBudget {
  Bytes bytes = 0;
  bool proved = true;  // false: the work ran out, a smaller one may do
  ChoiceCounts counts;
};

/// REQUIRES: as search_choices; the budget of the problem does not matter.
LeastBudget least_budget(const ChoiceProblem& problem, int64_t work = kChoiceWork);

}  // namespace partita::choose
