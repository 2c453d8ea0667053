#pragma once

#include <functional>
#include <vector>

#include "base/units.h"

namespace partita::estimate {

/// The first unit of each of `count` stages, so that the busiest stage has the least seconds among cuts all
/// of whose stages fit: fits(stage, begin, end). Of equal cuts the one with more in later stages, which hold
/// fewer micro-batches. Empty where there is none, or where there are fewer units than stages.
std::vector<int> cut_units(const std::vector<Seconds>& seconds, int count,
                           const std::function<bool(int, int, int)>& fits);

}  // namespace partita::estimate
