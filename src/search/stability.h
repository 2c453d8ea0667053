#pragma once

#include <string>
#include <vector>

#include "search/plan_costs.h"

namespace partita::search {

/// How far costs may be off before another plan is faster.
struct Stability {
  std::string rival;    // its summary; "": there is no other plan
  double margin = 0;    // the rival takes so many times as long
  double factor = 0;    // communication so many times as slow as assumed makes them equal; 0: none does
  std::string settles;  // the one measurement that decides between them
};

/// Prices the plan and its rivals again with slower and faster links; the rival that needs the least error.
/// `rivals`: fastest first. REQUIRES: they suit the model.
Stability stability_of(const Model& model, const PlanCosts& mine, const std::vector<Candidate>& rivals,
                       const SearchRequest& request);

/// In one sentence.
std::string show(const Stability& stability);

/// The cluster with all links `factor` times as fast, messages as far apart.
Cluster with_links(Cluster cluster, double factor);

}  // namespace partita::search
