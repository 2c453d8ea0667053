#pragma once

#include <functional>
#include <optional>

#include "program/walk.h"
#include "run/clock.h"
#include "run/fault.h"
#include "run/host_tensor.h"

namespace partita::run {

/// Sees output `out` of the instruction at `at`, on the thread of its rank; `value` brings it to the host.
using Observe = std::function<void(const At& at, int32_t out, const std::function<HostTensor()>& value)>;

/// Told the CPU seconds of the instruction at `at`, on the thread of its rank.
using Clocked = std::function<void(const At& at, Seconds seconds)>;

/// How a Program is run.
struct RunOptions {
  int threads_per_rank = 1;
  ClockKind clock = ClockKind::kReal;
  Timing timing;              // what actions take on a clock that is not real
  bool shared_links = false;  // emulated: messages from one rank to another share their link
  /// Emulated, by rank: all its transfers, sends and receives together, go through one queue in this order
  /// and one at a time, as on one stream of a device. Empty: none waits for another.
  std::vector<std::vector<int32_t>> queues;
  bool pinned = false;   // each rank stays on a core of its own, where there are enough
  bool traced = false;   // keep a Trace of the last step
  Seconds patience = 0;  // no rank goes on for so long: the run has failed; 0: wait for ever
  /// A failure before the first update leaves the session as it was: ranks wait for each other there.
  bool recoverable = false;
  std::optional<Fault> fault;  // put there on purpose
  Observe observe;             // sees every value that an instruction leaves; none: nobody looks
  Clocked clocked;             // told what every instruction took; none: nobody asks
};

}  // namespace partita::run
