#pragma once

#include <functional>

#include "search/objective.h"

namespace partita::search {

struct BatchSweep {
  int64_t batch = 0;
  SearchResult result;
};

/// The batch of most tokens a second (a device-second, by that objective) among doublings of a first one, and
/// its plans, with the faults of all of them. It stops when two doublings in a row gain less than a
/// hundredth, or nothing fits any more. `build` makes the step of a batch. REQUIRES: the objective is not
/// memory, which is least for one sample.
BatchSweep sweep_batches(const std::function<Model(int64_t)>& build, const SearchRequest& request,
                         Objective objective = Objective::kTime);

/// Positions of the first batch input: what a step works on.
int64_t tokens_of(const Model& model);

}  // namespace partita::search
