#pragma once

#include <string>
#include <vector>

#include "search/plan_costs.h"

namespace partita::search {

/// One part in which two plans differ.
struct Change {
  std::string part;           // "mesh", "microbatches", "store", ...
  std::string before, after;  // as JSON, cut short
  std::string from, to;       // in a few words
  bool alone = false;         // makes a plan on its own
  Seconds seconds = 0;        // alone: that it adds to a step of the first plan; negative: saves
  Bytes bytes = 0;            // and to its worst peak
};

/// Parts that are changed together, after those of the steps before.
struct ChangeStep {
  std::vector<std::string> parts;
  Seconds seconds = 0;
  Bytes bytes = 0;
};

/// What differs and what it costs. Turns lead from the first plan to the second, so that their costs add up
/// to the whole difference.
struct Difference {
  PlanCosts before, after;
  std::vector<Change> changes;
  std::vector<ChangeStep> turns;
};

/// InputError where a plan does not suit the model or the cluster.
Difference difference(const Model& model, const Plan& from, const Plan& to, const SearchRequest& request);

}  // namespace partita::search
