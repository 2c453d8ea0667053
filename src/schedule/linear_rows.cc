#include <algorithm>

#include "schedule/placement.h"
#include "schedule/rows.h"

namespace partita::schedule {
namespace {

// Every row of this file has one stage a device, so a device's list is fixed by how many forwards it runs
// before its first backward; afterwards one forward and one backward alternate.
Schedule with_warmup(std::string_view name, const ScheduleParams& params,
                     int (*warmup)(int devices, int rank)) {
  Schedule schedule = blank(name, Placement::kLinear, params, 1);
  for (int rank = 0; rank < params.devices; ++rank) {
    int ahead = std::min(warmup(params.devices, rank), params.microbatches);
    std::vector<Step>& list = schedule.order[rank];
    for (int k = 0; k < ahead; ++k) list.push_back({StepKind::kForward, rank, k});
    for (int k = 0; k < params.microbatches; ++k) {
      if (k + ahead < params.microbatches) list.push_back({StepKind::kForward, rank, k + ahead});
      list.push_back({StepKind::kBackward, rank, k});
    }
  }
  return schedule;
}

}  // namespace

// stage 0: F0 F1 F2 -- -- -- -- -- B0 B1 B2
// stage 1: -- F0 F1 F2 -- B0 B1 B2
// GPipe: all forwards, then all backwards; every device holds all micro-batches.
Schedule gpipe(const ScheduleParams& params) {
  Schedule schedule = blank("gpipe", Placement::kLinear, params, 1);
  for (int rank = 0; rank < params.devices; ++rank)
    for (StepKind kind : {StepKind::kForward, StepKind::kBackward})
      for (int k = 0; k < params.microbatches; ++k) schedule.order[rank].push_back({kind, rank, k});
  return schedule;
}

// stage 0: F0 F1 -- B0 F2 B1 -- B2
// stage 1: -- F0 B0 F1 B1 F2 B2
// PipeDream-Flush, DAPPLE: at most (devices - rank) micro-batches in flight.
Schedule one_f_one_b(const ScheduleParams& params) {
  return with_warmup("1f1b", params, [](int devices, int rank) { return devices - 1 - rank; });
}

// stage 0: F0 F1 F2 -- B0 F3 B1 -- B2 B3
// stage 1: -- F0 B0 F1 B1 F2 B2 F3 B3
// Twice the warm-up: the message of a forward has a whole step to travel. Peak 2 (devices - rank) - 1.
Schedule eager_one_f_one_b(const ScheduleParams& params) {
  return with_warmup("eager-1f1b", params, [](int devices, int rank) { return 2 * (devices - 1 - rank); });
}

}  // namespace partita::schedule
