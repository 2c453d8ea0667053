#pragma once

#include "model/model.h"
#include "profile/profile.h"

namespace partita {

/// What the ops and parameters of one module cost.
struct ModuleCost {
  std::string name;  // "transformer.h.0"; "" for what belongs to no module
  int64_t ops = 0, params = 0;
  Bytes param_bytes = 0, saved_bytes = 0;
  Flops forward = 0, backward = 0;
  Seconds seconds = 0;

  bool operator==(const ModuleCost&) const = default;
};

/// What one training step costs on one device, without its optimizer.
struct StepProfile {
  ModuleCost total;
  Bytes peak_bytes = 0;  // parameters, buffers, constants, the batch, gradients, activations, workspace
  std::string peak_op;   // the op during which the peak is reached
  std::vector<ModuleCost> modules;  // in order of first appearance; they add up to `total`
  std::vector<std::pair<std::string, int64_t>> opaque;  // ops without a row, by target, and how many of each
};

/// Walks the ops in execution order. A storage is born with the op that makes it and dies after its last use;
/// views share it. `saved_bytes` are the storages that ops before the loss made and ops after it use. Modules
/// are cut to `depth` parts of their path: "transformer.h.0.mlp" of depth 3 counts for "transformer.h.0".
/// REQUIRES: check(model) is empty.
StepProfile profile_step(const Model& model, const Cluster& cluster, int depth);

}  // namespace partita
