#pragma once

#include <string>
#include <vector>

#include "base/interrupt.h"
#include "cost/prices.h"
#include "estimate/cost_book.h"
#include "plan/recipes/recipe.h"
#include "search/progress.h"

namespace partita::search {

struct SearchRequest {
  Prices prices;        // of the cluster
  int64_t devices = 0;  // the first so many of it; 0: all
  Bytes memory = 0;     // limit per device
  OptimizerSpec optimizer;
  std::vector<std::string> allow, forbid;  // of kWays; nothing in `allow`: all
  RecipeSpec pinned;                       // sizes above 1 and a schedule that are not to change
  bool pin_dp = false, pin_tp = false, pin_pp = false, pin_microbatches = false, pin_schedule = false;
  size_t top = 5;
  bool finely = false;  // plans of the answer may differ in micro-batches and recomputation alone
  int effort = 3;       // 1 .. 5: how much work, never how many seconds
  size_t threads = 0;   // to plan on, 0: all cores; the answer does not depend on it
  /// A candidate that breaks a promise of ours ends the search with that Bug; else it is one of
  /// SearchResult::faults, and the search goes on without it.
  bool strict = true;
  Evaluators evaluators;
  ShowProgress progress;
  InterruptFlag stop = nullptr;  // set: give the best found so far

  int64_t ranks() const { return devices ? devices : num_ranks(prices.cluster()); }
};

/// Costs of units as a request wants them measured. Model and request must outlive the book.
inline CostBook book_of(const Model& model, const SearchRequest& request) {
  return {model, request.prices, request.optimizer, request.threads, request.strict, request.evaluators};
}

}  // namespace partita::search
