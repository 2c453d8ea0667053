#pragma once

#include <string>
#include <vector>

#include "search/candidate.h"
#include "search/request.h"

namespace partita::search {

/// What a plan is best at.
enum class Objective { kTime, kMemory, kDeviceHours };

struct ObjectiveRow {
  Objective objective;
  const char* name;  // as --objective says it
  const char* best;  // why the first plan is first
  const char* unit;  // "1.05x the <unit>"
};
const ObjectiveRow& row_of(Objective objective);
std::vector<std::string> objective_names();
/// InputError names the nearest known one.
Objective parse_objective(const std::string& name);

/// What a plan costs by the objective: seconds of a step, bytes of the worst device, device-seconds of a
/// step.
double cost_of(Objective objective, const Candidate& candidate);

/// Plans within the memory of every device, the best by `objective` first, with reasons.
/// time: search(model, request).
/// device-hours: those of the first 1, 2, 4 ... devices of a node and of 1, 2, ... nodes too, as far as they
/// divide the cluster; what is left idle costs nothing.
/// memory: the least on the worst device of all plans that take at most `slowdown` times as long as the
/// fastest; 0: however long. `bound` is 0 then: nothing is proved.
SearchResult search_for(Objective objective, double slowdown, const Model& model,
                        const SearchRequest& request);

}  // namespace partita::search
