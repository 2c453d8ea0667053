#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/units.h"

namespace partita::choose {

/// The largest of those that are not forbidden; 0 where all are.
inline Seconds most_finite(const std::vector<Seconds>& list) {
  Seconds most = 0;
  for (Seconds seconds : list)
    if (seconds < HUGE_VAL) most = std::max(most, seconds);
  return most;
}

}  // namespace partita::choose
