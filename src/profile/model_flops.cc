#include "profile/model_flops.h"

#include "cost/cost.h"
#include "model/attention_kernels.h"
#include "model/ops/common.h"
#include "model/row.h"

namespace partita::profile {
namespace {

/// The share of the kernels' products (two forward, five backward) that the model itself asks for.
constexpr double kForward = 1, kBackward = 4.0 / 5, kCausal = 0.5;

double needed_share(const Op& op) {
  std::optional<AttentionKernel> kernel = attention_kernel(op);
  if (!kernel) return 1;
  bool causal = bool_argument(op, kernel->is_causal, "is_causal", false);
  return (op.backward ? kBackward : kForward) * (causal ? kCausal : 1);
}

}  // namespace

Flops model_flops(const Model& model) {
  Flops sum = 0;
  for (const Op& op : model.ops) sum += needed_share(op) * flops_of(view_of(model, op));
  return sum;
}

Utilisation utilisation(Flops flops, Seconds seconds, const Cluster& cluster, int64_t ranks, DType dtype) {
  double peak = 0;
  for (int rank = 0; rank < ranks; ++rank) peak += peak_flops(device_of(cluster, rank), dtype);
  return {flops / seconds / static_cast<double>(ranks) / 1e12, flops / seconds / peak};
}

}  // namespace partita::profile
