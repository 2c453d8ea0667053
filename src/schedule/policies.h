#pragma once

#include <string>
#include <vector>

#include "schedule/bound.h"
#include "schedule/flow.h"
#include "schedule/list_schedule.h"
#include "schedule/search.h"

namespace partita {

/// Rankings for a list scheduler that no named schedule has: depth first, breadth first, groups, backward
/// first, and interleaved at other paces.
struct NamedPolicy {
  std::string name;
  Policy policy;
};
std::vector<NamedPolicy> greedy_policies(const SearchProblem& problem, const Flow& flow,
                                         const HeadTail& ends);

}  // namespace partita
