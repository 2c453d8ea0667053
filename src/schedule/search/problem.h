#pragma once

#include <string>
#include <vector>

#include "schedule/cost.h"
#include "schedule/flow.h"
#include "schedule/placement.h"
#include "schedule/schedule.h"

namespace partita::schedule {

/// What is to be short. kMakespan: first start to last end over all devices, as with a barrier before the
/// optimizer. kSpan: the longest first-start-to-last-end of one device, as when every stage steps by itself.
/// Among equals the other one decides.
enum class Objective { kMakespan, kSpan };

/// One pipeline to order: placement and chunks are fixed, costs are of its stages.
struct SearchProblem {
  int devices = 1;
  int microbatches = 1;
  int chunks = 1;
  Placement placement = Placement::kLinear;
  Costs costs;
  std::vector<int64_t> cap;  ///< memory of each device in the unit of Costs::memory; empty: no limit
  bool split = false;        ///< input and weight gradients apart
  Objective objective = Objective::kMakespan;
  int effort = 3;  ///< 1..5: each step about triples the work
};

/// The best order found, and how far from optimal it can be.
struct Found {
  Schedule schedule;
  Rational objective;     ///< makespan or span
  Rational bound;         ///< no first-in-first-out order is shorter
  std::string certified;  ///< what the bound is: "exact search" or "heads, tails and memory"
  std::string origin;     ///< the seed the answer grew from
};

}  // namespace partita::schedule
