#pragma once

#include "estimate/estimate.h"
#include "search/judging.h"

namespace partita::search {

/// Estimates recipes that were judged again, with everything stored alike, with other limits of memory and
/// with stages cut a unit away, and leaves them with `judging`. Those `beyond` the limit with a little more,
/// since bytes may be counted too high.
void refine(Judging& judging, const CostBook& book, const Freedom& freedom,
            const std::vector<Estimate>& beyond);

}  // namespace partita::search
