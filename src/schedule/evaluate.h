#pragma once

#include <string>
#include <vector>

#include "schedule/cost.h"
#include "schedule/schedule.h"

namespace partita::schedule {

/// How transfers share the way. kPerPeer: every (peer, direction) has its own channel, a message takes its
/// hop and delays no other. kSingle: each device's sends and receives form ONE in-order queue, a transfer
/// starts when it heads both queues and its data exists, and holds both for the hop.
enum class Queue { kPerPeer, kSingle };

/// One message: the output of a step on device `from`, needed on device `to`.
struct Message {
  Step producer;
  int from = 0;
  int to = 0;

  auto operator<=>(const Message&) const = default;
};

/// Transfers of each device, sends and receives together, in the order its one queue moves them.
using QueueOrder = std::vector<std::vector<Message>>;

/// What happens when a schedule runs, exactly. Times in ticks of 1 / `per_unit`.
struct Evaluation {
  bool deadlock = false;
  std::vector<std::string> cycle;  ///< with deadlock: each entry waits for the next, the last for the first
  int64_t per_unit = 1;
  std::vector<std::vector<int64_t>> start, end;  ///< [device][position in its order]
  Rational makespan;                             ///< first start to last end over all devices
  Rational span;                                 ///< the longest first-start-to-last-end of one device
  Rational bubble_makespan;      ///< 1 - work / (devices * makespan): what a barrier at the end leaves idle
  Rational bubble_span;          ///< (span - busiest device's work) / span: what zero-bubble papers quote
  std::vector<int> peak_chunks;  ///< live (stage, micro-batch) pairs of each device
  std::vector<int64_t> peak_memory;  ///< the same, weighed by Costs::memory
};

/// Runs `schedule` as early as its order allows. A deadlock is an answer, with its cycle, not an error.
/// REQUIRES: check(schedule) is empty. Example: 1f1b, P = 4, m = 8, F = 1, B = 2 has makespan 33, bubble
/// 3/11.
Evaluation evaluate(const Schedule& schedule, const Costs& costs, Queue queue = Queue::kPerPeer);

/// The same with every device's queue given.
Evaluation evaluate(const Schedule& schedule, const Costs& costs, const QueueOrder& queues);

/// Builds each device's one queue as PyTorch's lowering does: sweep the devices again and again, each time
/// moving at most one step a device whose inputs have arrived in its list; then its send, and at that moment
/// the receive on the peer. Steps that can never move are left out.
QueueOrder single_queue(const Schedule& schedule);

/// Live chunks and memory of `device` after each step that changes them, in time order.
struct MemoryLevel {
  Rational time;
  int chunks = 0;
  int64_t memory = 0;
};
std::vector<MemoryLevel> memory_over_time(const Schedule& schedule, const Costs& costs, const Evaluation& run,
                                          int device);

}  // namespace partita::schedule
