#pragma once

#include <cstdint>

#include "schedule/list_schedule.h"

namespace partita::schedule {

/// Shortens the makespan of an order by moving operations inside the blocks of its critical path (tabu
/// search as for job shops, Nowicki and Smutnicki 1996: a block is what one device runs without a gap on that
/// path). Moves are judged by the longest path through what moved, from the times before the move, so a round
/// costs one pass over the order and not one for every move. Memory stays within the caps. Stops after `work`
/// operations retimed, or at `bound` ticks. Never returns anything worse. `spent` grows by the work done.
Listed shorten(const Flow& flow, const Listed& from, int64_t bound, int64_t work, int64_t& spent);

}  // namespace partita::schedule
