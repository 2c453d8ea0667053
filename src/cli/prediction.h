#pragma once

#include "cli/inputs.h"
#include "cli/throughput.h"
#include "cost/prices.h"
#include "simulate/simulate.h"

namespace partita::cli {

/// The cluster that a plan is looked at on: the one of the command line, else the plan's own. InputError that
/// names `where` if there is none.
Cluster cluster_of(const ClusterInput& input, const Plan& plan, const std::string& where);
/// The limit that the plan was made for counts on the plan's own cluster, unless flags say another.
MemoryLimit limit_of(const ClusterInput& input, const Cluster& cluster, const Plan& plan);

/// What a plan takes on a cluster, simulated.
struct Prediction {
  Trace trace;
  MemoryLimit limit;
  Throughput throughput;

  Bytes worst_peak() const;
  bool fits() const { return limit.fits(worst_peak()); }
};

/// A plan file and where it is to run. All must outlive what is made of it.
struct PlanQuestion {
  const Model& model;
  const Plan& plan;
  const Prices& prices;
  std::string file = {};  // that messages name; empty: none
  Contention contention = Contention::kOn;
  bool every_rank = false;  // an event for each rank, not for each rank class
};
/// InputError where the cluster has fewer devices than the plan, or the plan does not suit the model.
Prediction predict(const PlanQuestion& question, const MemoryLimit& limit);

/// Dtype, seconds, throughput, peaks, whether it fits.
std::string to_text(const PlanQuestion& question, const Prediction& prediction);
Json to_json(const PlanQuestion& question, const Prediction& prediction);

}  // namespace partita::cli
