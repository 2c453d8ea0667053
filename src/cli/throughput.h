#pragma once

#include "base/json.h"
#include "cluster/cluster.h"
#include "plan/plan.h"
#include "profile/model_flops.h"

namespace partita::cli {

/// What people compare: how fast a step of known seconds is.
struct Throughput {
  int64_t micro_batch_size = 0;  // samples a data-parallel rank computes at once
  double tokens_per_second = 0, tokens_per_second_per_device = 0;
  Utilisation used;
};

/// Gives the throughput of plans of one model on one cluster; counts the flops of the model once.
class ThroughputOf {
 public:
  /// Both must outlive it.
  ThroughputOf(const Model& model, const Cluster& cluster);

  Throughput operator()(const Plan& plan, Seconds seconds) const;

 private:
  const Model& model_;
  const Cluster& cluster_;
  Flops flops_;
  DType dtype_;
};

/// "micro-batch size 1; 104320 tokens/s, 815 per device; 365.9 TFLOP/s per device, 37.0 % MFU".
std::string show(const Throughput& throughput);
/// Adds "micro_batch_size", "tokens_per_second", "tokens_per_second_per_device", "tflops_per_device", "mfu".
void write(const Throughput& throughput, Json& json);

}  // namespace partita::cli
