#pragma once

#include <vector>

#include "schedule/flow.h"

namespace partita::schedule {

/// Ticks of one operation that no schedule can avoid: `head` before its start, `tail` after its end.
struct HeadTail {
  std::vector<int64_t> head, tail;  ///< [line * microbatches + microbatch]
};

/// Longest chains before and after every operation: data, hops, the operations of its own line, with a cap
/// that some earlier micro-batch must have left the device before this one may enter, and on its own device
/// the time that all operations it waits for need there, one after another (the last stage of 1f1b ends B of
/// micro-batch k no sooner than its first forward arrived and k + 1 forwards and backwards ran).
HeadTail heads_and_tails(const Flow& flow);

/// Ticks below which no makespan of `flow` can be, micro-batches first in first out. The larger of, for every
/// device: its operations alone with their heads and tails, preemption allowed (Jackson); the memory-time its
/// micro-batches must occupy divided by the cap; and its work plus what it must idle while it warms up and
/// while it drains (warmup.h). Example: 1f1b's
/// pipeline has (m + P - 1)(F + B), so 1f1b is optimal.
int64_t makespan_bound(const Flow& flow);
/// The same with heads and tails in hand.
int64_t makespan_bound(const Flow& flow, const HeadTail& ends);

/// Ticks below which the longest span of a single device cannot be: its work, or the memory-time over the
/// cap.
int64_t span_bound(const Flow& flow);

}  // namespace partita::schedule
