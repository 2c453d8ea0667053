#pragma once

#include "cluster/cluster.h"
#include "model/model.h"

namespace partita::profile {

/// Flops that the mathematics of one step needs, however it is run: the numerator of model flops utilisation
/// (MFU, as PaLM defines it). Counted are products of forward and backward, each once: matmuls,
/// convolutions and attention, at 2 flops for a multiplication and an addition. The backward of attention
/// counts twice its forward: that the kernel computes its scores again is no work of the model. Causal
/// attention counts half. Recomputation of a plan, padding of kernels, elementwise ops and the optimizer
/// count nothing.
/// Attention that a model writes as products and a mask counts whole: no row says what the mask hides.
///
/// Example: a Transformer of N parameters in matmuls, L layers of width h, batch B, S tokens, causal:
/// 6 N B S + 6 L B S S h.
Flops model_flops(const Model& model);

/// Model flops per second against what all `ranks` devices could do at most in the dtype of the parameters.
struct Utilisation {
  double tflops_per_device = 0;
  double mfu = 0;  // 0.4 for 40 %
};
/// REQUIRES: ranks is at most that of the cluster, seconds above 0.
Utilisation utilisation(Flops flops, Seconds seconds, const Cluster& cluster, int64_t ranks, DType dtype);

}  // namespace partita::profile
