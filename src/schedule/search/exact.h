#pragma once

#include <cstdint>
#include <optional>

#include "schedule/list_schedule.h"

namespace partita::schedule {

/// What a breadth-first search over partial schedules found.
struct Enumerated {
  std::optional<Listed> better;  ///< an order shorter than `below`, if one was met
  bool complete = false;         ///< nothing was cut: no order is shorter than `better`, or than `below`
};

/// Looks for orders with a makespan below `below` ticks. Operations are appended in order of their start, so
/// every order is met once; a partial schedule is dropped if another one with the same operations is nowhere
/// later, or if its bound reaches `below`. Keeps the `width` most promising of each level (a beam where that
/// cuts) and stops after about `work` partial schedules.
Enumerated enumerate(const Flow& flow, int64_t below, size_t width, int64_t work, int64_t& spent);

}  // namespace partita::schedule
