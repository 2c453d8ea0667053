#pragma once

#include "estimate/estimate.h"
#include "search/judging.h"

namespace partita::search {

/// Stores the parameters of the fastest plans anew: what it saves and needs to have less of a group in pieces
/// is simulated, one group at a time, and a choice among all of them fills the limit; where the sum of their
/// bytes was not what they need together, once more with another limit.
void fill(Judging& judging, const CostBook& book, const Freedom& freedom);

}  // namespace partita::search
