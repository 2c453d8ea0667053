#pragma once

#include <string>
#include <vector>

#include "base/interrupt.h"
#include "plan/recipe.h"
#include "profile/prices.h"
#include "search/estimate.h"
#include "search/evaluators.h"
#include "search/progress.h"

namespace partita {

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

/// The ways a plan can be made of, as --allow and --forbid name them.
std::vector<std::string> known_ways();

/// The fastest plans within the memory of every device: products of recipes over all devices, micro-batch
/// sizes and schedules in the outer loop, pruned by bounds; stages cut and storage and recomputation chosen
/// for each; the best lowered and simulated where the cluster is small enough. Deterministic but for `stop`.
SearchResult search(const Model& model, const SearchRequest& request);

}  // namespace partita
