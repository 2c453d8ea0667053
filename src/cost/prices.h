#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "cluster/memory_limit.h"
#include "cost/calibration.h"
#include "cost/cost.h"

namespace partita::cost {

/// How seconds are known and how far off to expect them; said with every prediction.
struct Tier {
  std::string_view name;      // "spec sheet", "calibrated"
  double expected_error = 0;  // share of a step
};

/// A call of an op where it runs.
struct OpCall {
  const OpView& view;                      // local shapes
  Bytes moved = 0;                         // read and written
  bool aliases = false;                    // its outputs lie in its input
  std::function<std::string()> signature;  // signature_of; asked for only where ops were measured
};

/// What one call takes: seconds, bytes hidden during it, and bytes its outputs have beyond their shapes.
struct CallCost {
  Flops flops = 0;
  Seconds seconds = 0;
  Bytes workspace = 0, retained = 0;
};

/// What ops, messages and collectives take on a cluster: the one place that says so, for profile, simulation
/// and search alike. From the spec sheet, or from what `calibrate` measured. Copies share the measurements.
class Prices {
 public:
  /// From the spec sheet. A cluster stands for its prices wherever nothing was measured.
  Prices(Cluster cluster = {});  // NOLINT(google-explicit-constructor)
  /// From measurements of one CPU, whose threads are the ranks. REQUIRES: on_cpu(cluster).
  Prices(Cluster cluster, Calibration calibration);

  const Cluster& cluster() const { return cluster_; }
  Tier tier() const;
  bool measured() const { return measured_ != nullptr; }
  /// That all ranks share; 0 where each has its own device.
  int cores() const;
  /// Can ranks communicate beside computing? CPUs copy with the cores that compute.
  bool overlaps() const;

  CallCost call(const OpCall& call, const Device& device) const;
  /// An instruction that is no op of the model: `kind` is "concat", "add", "optimize" ...
  Seconds move(std::string_view kind, DType dtype, Bytes moved, const Device& device) const;

  /// As the functions of profile.h; `kind` is "all_reduce", "all_gather", "reduce_scatter" or
  /// "all_to_all".
  Seconds collective(std::string_view kind, Bytes bytes, const std::vector<int32_t>& ranks) const;
  Seconds send(Bytes bytes, int from, int to) const;

 private:
  struct Measured;

  Cluster cluster_;
  std::shared_ptr<const Measured> measured_;  // null: from the spec sheet
};

}  // namespace partita::cost
