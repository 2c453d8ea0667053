#pragma once

#include "estimate/estimate.h"
#include "search/judging.h"

namespace partita::search {

/// Goes on from plans that fit to faster ones that differ in one decision each time: estimates place things
/// well, and count bytes to within a few percent, so at the limit single decisions are tried out.
void climb(Judging& judging, const CostBook& book, const Freedom& freedom);

/// Goes on from plans that are faster than the best but need too much to others that compute more again or
/// gather operators slice by slice, until they fit or are no faster: estimates know no slices, and of
/// schedules that put weight gradients off no recomputation.
void descend(Judging& judging, const CostBook& book, const Freedom& freedom);

}  // namespace partita::search
