#pragma once

#include <cstdint>
#include <vector>

#include "schedule/flow.h"

namespace partita {

/// Time a device must idle near one end of the step: of the first `until` ticks at most `work` can be used.
struct Idle {
  int64_t until = 0, work = 0;

  int64_t ticks() const { return until - work; }
};

/// The longest idle time of `device` that starts with the step. Before a moment only operations whose head is
/// smaller run, and of those that take memory only as many as the cap and what could have been given back by
/// then allow. `head` is of every operation, [line * microbatches + microbatch]. Example: 8 forwards fit, the
/// first backward is back after 20 forwards' time: 12 of them are idle.
Idle warmup_idle(const Flow& flow, const std::vector<int64_t>& head, int device);

}  // namespace partita
