#pragma once

#include <vector>

#include "cost/prices.h"
#include "plan/plan.h"

namespace partita::search {

/// What a plan takes, lowered and simulated.
struct Known {
  Seconds seconds = 0;
  Bytes peak = 0;  // of the worst rank
  std::string summary;
};

/// Those that do not apply to this model are left out.
std::vector<Known> simulated(const Model& model, const Prices& prices, const std::vector<Plan>& plans);

/// Every recipe with everything stored alike, with and without recomputation, and `random` plans whose stages
/// are cut anywhere between units, each parameter stored and each module computed again as it comes.
std::vector<Known> rivals(const Model& model, const Prices& prices, int random, uint32_t seed);

}  // namespace partita::search
