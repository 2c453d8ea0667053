#pragma once

#include <cmath>
#include <optional>

#include "choose/problem.h"

namespace partita::choose {

/// Partial choices looked at before a search settles for what it has.
inline constexpr int64_t kChoiceWork = 1'000'000;

struct ChoiceAnswer {
  std::optional<Choice> best;   // nothing: none fits, or none was found
  bool proved = false;          // false: the work ran out, something better may exist
  Seconds bound = 0;            // no choice takes less; equal to best->seconds where that is proved
  Seconds relaxed_bound = 0;    // the same if operators could be shared between options
  double seconds_per_byte = 0;  // that a larger budget would save, at the margin
  int64_t work = 0;

  /// (seconds - bound) / seconds.
  double gap() const;
};

/// The choice of fewest seconds within the budget, with a bound that says how far it may be from the best:
/// nowhere (gap 0) unless `work` ran out, or a gap of `enough` was reached. Choices of `below` seconds or
/// more are not looked for. Deterministic. REQUIRES: every operator has an option; bytes and transients have
/// one number for each moment.
ChoiceAnswer search_choices(const ChoiceProblem& problem, int64_t work = kChoiceWork, double enough = 0,
                            Seconds below = HUGE_VAL);

}  // namespace partita::choose
