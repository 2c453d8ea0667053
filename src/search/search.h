#pragma once

#include <string>
#include <vector>

#include "plan/recipe.h"
#include "profile/prices.h"

namespace partita {

struct SearchRequest {
  Prices prices;     // of the cluster
  Bytes memory = 0;  // limit per device
  OptimizerSpec optimizer;
  std::vector<std::string> allow, forbid;  // of kWays; nothing in `allow`: all
};

/// A plan that was lowered and simulated.
struct Candidate {
  Plan plan;
  Seconds step_seconds = 0;
  Seconds exposed_comm_seconds = 0;
  double bubble = 0;
  std::vector<Bytes> peak_bytes;  // per rank
  bool fits = false;
  std::string reason;  // why it lost, or that it won

  Bytes worst_peak() const;
};

struct SearchResult {
  std::vector<Candidate> fitting;    // fastest first; ties: less memory, then fewer pieces
  std::vector<Candidate> beyond;     // over the limit, least memory first
  std::vector<std::string> refused;  // recipe: why it does not apply to this model
  int evaluated = 0;
};

/// The ways a plan can be made of, as --allow and --forbid name them.
inline constexpr const char* kWays[] = {"dp",       "zero1",        "zero3",    "tp",
                                        "pipeline", "microbatches", "recompute"};

/// Every product of recipes over all devices, micro-batch counts that divide the batch, and schedules; each
/// lowered, its memory counted and its time simulated; what does not fit once more with recomputation.
/// Deterministic.
SearchResult search(const Model& model, const SearchRequest& request);

/// REQUIRES: nothing fits. What would: "the least that would do is 1.2 GiB (zero3-4, 4 micro-batches)".
std::string least_that_would_do(const SearchResult& result);

}  // namespace partita
