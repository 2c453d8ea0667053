#pragma once

#include <string>
#include <vector>

#include "estimate/plan_fault.h"
#include "plan/recipes/recipe.h"

namespace partita::search {

/// A plan with what it takes: simulated where it was lowered, else as estimated.
struct Candidate {
  Plan plan;
  RecipeSpec spec;
  bool lowered = false;    // and simulated
  bool certified = false;  // what was lowered is proved to compute the step
  Seconds step_seconds = 0;
  Seconds estimated_seconds = 0;
  Seconds measured_seconds = 0;  // where it was really run
  Seconds exposed_comm_seconds = 0;
  double bubble = 0;
  std::vector<Bytes> peak_bytes;  // per rank
  bool fits = false;
  std::string reason;  // why it lost, or that it won

  Bytes worst_peak() const;
};

struct SearchResult {
  /// Those that were lowered first, then those that are only estimated; fastest first, each of another
  /// character.
  std::vector<Candidate> fitting;
  std::vector<Candidate> beyond;     // over the limit, least memory first
  std::vector<std::string> refused;  // recipe: why it does not apply to this model
  std::vector<PlanFault> faults;     // candidates that are left out
  Seconds bound = 0;                 // no plan of the recipes looked at takes less, by costs of units
  int64_t evaluated = 0;             // estimated
  int64_t pruned = 0;                // left out by their bound
  int64_t lowered = 0;
  bool interrupted = false;  // by `stop`: the best so far, and none of it may be certified
  bool certified = false;    // the first one, where it is lowered
};

}  // namespace partita::search
