#pragma once

#include <array>
#include <functional>
#include <vector>

#include "lower/code.h"
#include "lower/placement.h"
#include "schedule/schedule.h"

namespace partita {

struct RankOrder {
  const Code& code;
  const Placement& placement;
  const Schedule& schedule;
  const Plan& plan;
  int stage = 0;
  int64_t index = 0;                                         // of the rank among the devices of its stage
  const std::vector<std::array<BodyId, kSegments>>& bodies;  // micro-batch, segment
  std::function<TypeId(int value, int microbatch)> type;
};

/// The flat list of one rank: bodies in the order of the schedule, receives before the body that reads, sends
/// after the body that writes. A send is waited for where its answer has already proved it done (an
/// activation before its backward) or before the next of its kind, so waiting costs nothing and memory stays
/// bounded.
std::vector<Action> rank_actions(const RankOrder& rank);

}  // namespace partita
