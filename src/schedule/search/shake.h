#pragma once

#include <cstdint>
#include <vector>

#include "schedule/flow.h"

namespace partita::schedule {

/// Numbers for a search that must answer the same every time: a linear congruence, high bits out.
class Dice {
 public:
  /// A number from 0 to `sides` - 1. REQUIRES: sides > 0.
  int64_t roll(int64_t sides) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return int64_t((state_ >> 33) % uint64_t(sides));
  }

 private:
  uint64_t state_ = 0x9E3779B97F4A7C15u;
};

/// Moves every time by up to two of the longest operations, each on its own. `times` are of every operation,
/// [line * microbatches + microbatch].
void shake(const Flow& flow, Dice& dice, std::vector<int64_t>& times);

/// Moves many times together: forwards, backwards or weight gradients of some chunk, of some devices (growing
/// towards one end, or all alike) and of a run of micro-batches, earlier or later. What a pipeline needs most
/// often: one more forward ahead on all devices, a little more the farther from the end.
void drift(const Flow& flow, Dice& dice, std::vector<int64_t>& times);

}  // namespace partita::schedule
