#pragma once

#include <vector>

#include "base/units.h"
#include "schedule/schedule.h"

namespace partita::estimate {

/// Seconds of one stage for one micro-batch.
struct StageSeconds {
  Seconds forward = 0, input_grad = 0, weight_grad = 0;
  Seconds hop = 0;  // of a message between this stage and the next

  Seconds of(StepKind kind) const;
  Seconds all() const { return forward + input_grad + weight_grad; }
};

/// When each device has run its last step, if it starts at 0. As the simulator has it: a message starts when
/// its sender is done and its receive is open, one receiving step ahead. REQUIRES: `schedule` is complete,
/// free of deadlock and has one stream.
std::vector<Seconds> device_ends(const Schedule& schedule, const std::vector<StageSeconds>& stages);

/// What one micro-batch of a stage holds: between forward and backward, and at most during each.
struct StageBytes {
  Bytes saved = 0, forward_peak = 0, backward_peak = 0;
};

/// The most that each device holds over the step, for its micro-batches alone.
std::vector<Bytes> device_peaks(const Schedule& schedule, const std::vector<StageBytes>& stages);

/// By stage: how many of its micro-batches are alive when its device holds most of them.
std::vector<int> alive_at_most(const Schedule& schedule);

}  // namespace partita::estimate
