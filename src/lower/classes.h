#pragma once

#include <vector>

#include "lower/code.h"

namespace partita::lower {

/// Coordinates on every mesh axis, in ranges within which the code of a rank is the same and what it holds
/// moves evenly: 10 rows over 4 ranks are cut at 2, since the first two hold 3 rows; a value that the first
/// rank alone counts cuts at 1. Axes that classes are not folded along are cut everywhere.
using ClassRanges = std::vector<std::vector<Interval>>;
ClassRanges class_ranges(const Atoms& atoms, const Transformed& split, const Code& code);

/// Every coordinate for itself.
ClassRanges single_ranges(const Transformed& split);

}  // namespace partita::lower
