#pragma once

#include <cstdint>
#include <vector>

#include "schedule/flow.h"

namespace partita::schedule {

/// A device near one end of the step: of the first `until` ticks at most `work` can be used.
struct Idle {
  int64_t until = 0, work = 0;

  int64_t ticks() const { return until - work; }
};

/// Moments after the step began, each with the most work `device` can have done by then; both ascend. Before
/// a moment only operations whose head is smaller run, and of those that take memory only as many as the cap
/// and what could have been given back by then allow. `head` is of every operation,
/// [line * microbatches + microbatch]. Example: 8 forwards fit, the first backward is back after 20 forwards'
/// time: {20, 8}, so 12 of them are idle.
std::vector<Idle> warmup(const Flow& flow, const std::vector<int64_t>& head, int device);

/// Ticks that a device with `work` in all needs when `warm` holds at one end of the step and `cool` at the
/// other. Example: {20, 8} at both ends and work 100 need 124.
int64_t between_ends(const std::vector<Idle>& warm, const std::vector<Idle>& cool, int64_t work);

}  // namespace partita::schedule
