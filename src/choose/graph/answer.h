#pragma once

#include <optional>
#include <vector>

#include "choose/graph/graph.h"

namespace partita::choose {

struct StrategyLimits {
  int64_t work = 400'000'000;        // numbers added up before the search settles for what it has
  int64_t table = int64_t{1} << 22;  // numbers in one table; beyond, bounds instead of exact tables
};

struct StrategyAnswer {
  std::optional<StrategyChoice>
      best;                        // nothing: no choice is allowed and fits, or (not proved) none was found
  bool proved = false;             // false: the work ran out, something better may exist
  Seconds bound = 0;               // no choice takes less; equal to best->seconds where proved
  std::vector<double> multiplier;  // by resource: seconds that one byte more would save, at the margin
  int64_t branches = 0, work = 0;
  int64_t largest_table = 0;

  /// (seconds - bound) / seconds.
  double gap() const { return best && best->seconds > 0 ? (best->seconds - bound) / best->seconds : 0; }
};

}  // namespace partita::choose
