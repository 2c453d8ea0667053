#pragma once

#include <string>
#include <vector>

#include "schedule/flow.h"
#include "schedule/list_schedule.h"
#include "schedule/search/problem.h"

namespace partita::schedule {

/// An order to start from, with the name it is known by.
struct Seed {
  std::string name;
  FlowOrder order;
};

/// Every named schedule that lives on this placement with these chunks, as orders of `flow`: gradients are
/// split or fused to suit it. Their memory may exceed the caps.
std::vector<Seed> named_seeds(const SearchProblem& problem, const Flow& flow);

}  // namespace partita::schedule
