#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "lower/lower.h"
#include "program/memory.h"
#include "program/trace.h"
#include "search/candidate.h"
#include "search/request.h"

namespace partita::search {

/// One collective that a rank takes part in, again and again.
struct Collective {
  std::string kind;  // "all_reduce"
  Bytes bytes = 0;
  std::vector<int32_t> ranks;
  int64_t times = 0;  // in a step
  Seconds each = 0;

  Seconds all() const { return static_cast<double>(times) * each; }
};

/// What a plan takes, by what it goes for.
struct PlanCosts {
  Candidate candidate;
  /// Means over ranks; they add up to the step.
  Seconds computing = 0, waiting = 0, idle = 0;
  std::array<Bytes, kCauses> bytes{};   // of the worst rank at its peak, by Cause
  std::vector<Collective> collectives;  // of the rank that is longest in them, those that take most first
};

/// A plan lowered once and priced as often as one likes.
class PricedPlan {
 public:
  /// InputError where it does not suit the model.
  PricedPlan(const Model& model, const Plan& plan);

  Trace simulated(const Prices& prices) const;
  PlanCosts costs(const SearchRequest& request) const;

 private:
  std::vector<Collective> collectives(const Prices& prices) const;

  Plan plan_;
  Prepared prepared_;
  FoldedProgram folded_;
};

/// "all_reduce of 12.0 MiB over 8 ranks of one node".
std::string show(const Collective& collective, const Cluster& cluster);

}  // namespace partita::search
