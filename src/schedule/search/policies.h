#pragma once

#include <string>
#include <vector>

#include "schedule/flow.h"
#include "schedule/list_schedule.h"
#include "schedule/search/bound.h"
#include "schedule/search/problem.h"

namespace partita::schedule {

/// Rankings for a list scheduler that no named schedule has: depth first, breadth first, groups, backward
/// first, and interleaved at other paces.
struct NamedPolicy {
  std::string name;
  Policy policy;
};
std::vector<NamedPolicy> greedy_policies(const SearchProblem& problem, const Flow& flow,
                                         const HeadTail& ends);

}  // namespace partita::schedule
