#pragma once

#include <optional>
#include <vector>

#include "schedule/flow.h"

namespace partita::schedule {

/// How a list scheduler chooses. Of the operations a device could start, it takes the one with the least rank
/// among those that can start before the earliest startable one would have ended times `patience` (0: never
/// wait for a better one; 1: wait as long as it cannot hurt the better one).
struct Policy {
  std::vector<int64_t> rank;  ///< [line * microbatches + microbatch]
  double patience = 1;
  /// Ticks of forwards a device may run before its first backward (micro-batch 0 excepted); empty: no limit.
  /// One forward too many delays that backward on every device behind it.
  std::vector<int64_t> warmup;
  /// Micro-batches that a forward line may have live on its device, [line]; empty: no limit. Keeps early
  /// chunks from taking the memory that later chunks of the same micro-batches need.
  std::vector<int> quota;
};

/// An order with its times: end of each operation in ticks, [line * microbatches + microbatch].
struct Listed {
  FlowOrder order;
  std::vector<int64_t> end;
  int64_t makespan = 0;
  int64_t span = 0;
};

/// Schedules greedily, in time order, within the caps. An operation that takes memory starts only if the
/// older micro-batches could still finish one after another (a banker's rule), so the result never wedges.
/// nullopt: some device cannot hold even one micro-batch.
std::optional<Listed> list_schedule(const Flow& flow, const Policy& policy);

/// Times of a given order, run as early as possible. REQUIRES: the order has no deadlock.
Listed retime(const Flow& flow, FlowOrder order);

/// The same; nullopt if the order deadlocks.
std::optional<Listed> try_retime(const Flow& flow, FlowOrder order);

/// Start of every operation, as ranks that make list_schedule follow this order.
std::vector<int64_t> starts_of(const Flow& flow, const Listed& listed);

/// Memory peaks of every device within their caps?
bool within_caps(const Flow& flow, const FlowOrder& order);

}  // namespace partita::schedule
