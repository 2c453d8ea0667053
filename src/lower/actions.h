#pragma once

#include <functional>
#include <map>
#include <vector>

#include "lower/code.h"
#include "lower/lower.h"
#include "lower/placement.h"

namespace partita::lower {

struct RankOrder {
  const Code& code;
  const Placement& placement;
  const Ordered& ordered;
  int site = 0;
  int64_t index = 0;                                     // of the rank among the devices of its site
  const std::map<Segment, std::vector<BodyId>>& bodies;  // by micro-batch
  std::function<TypeId(int value, int microbatch)> type;
  int microbatches = 1;
};

/// The flat list of one rank: bodies in the order of the schedule, receives opened one receiving step ahead,
/// sends after the body that writes. A send is waited for before the first step that starts after its
/// receiver did in the order of the schedule: such waits all point forward in one order of all steps, so that
/// none of them can close a circle, and memory stays bounded.
std::vector<Action> rank_actions(const RankOrder& rank);

}  // namespace partita::lower
