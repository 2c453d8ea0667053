#pragma once

#include <cstdint>
#include <vector>

namespace partita::schedule {

/// An operation of one device: it starts no sooner than `head`, and `tail` must still pass after its end.
struct Job {
  int64_t head, cost, tail;

  auto operator<=>(const Job&) const = default;
};

/// Ticks below which no order of `jobs` on one device can be done, tails included. Preemptive: at any time
/// the released job with the longest tail runs. Sorts `jobs`.
int64_t jackson(std::vector<Job>& jobs);

}  // namespace partita::schedule
