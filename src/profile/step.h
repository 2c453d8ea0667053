#pragma once

#include <array>

#include "cost/prices.h"
#include "profile/memory.h"
#include "profile/phase.h"

namespace partita::profile {

/// What the ops and parameters of one module cost.
struct ModuleCost {
  std::string name;  // "transformer.h.0"; "" for what belongs to no module
  int64_t ops = 0, params = 0;
  Bytes param_bytes = 0;
  Bytes saved_bytes = 0;  // that it makes in forward and backward uses
  Bytes peak_bytes = 0;   // alive at the peak of the step
  Flops forward = 0, backward = 0;
  std::array<Seconds, kPhases> seconds{};  // by Phase

  Seconds total_seconds() const { return seconds[0] + seconds[1] + seconds[2]; }
  bool operator==(const ModuleCost&) const = default;
};

/// What all ops of one kind cost.
struct TargetCost {
  std::string target;  // "aten.mm.default"
  int64_t ops = 0;
  int64_t opaque = 0;    // of these without a row
  int64_t inferred = 0;  // of these with an inferred one (model/inferred.h)
  Flops flops = 0;
  Seconds seconds = 0;

  bool operator==(const TargetCost&) const = default;
};

/// A row of the tree: a module with all it holds, or `count` modules alike, added up.
struct TreeRow {
  ModuleCost cost;    // cost.name: "transformer.h.0..11" for twelve alike
  std::string label;  // the part after the row above: "h.0..11"
  int depth = 0;      // rows above it that hold it
  int64_t count = 1;

  bool operator==(const TreeRow&) const = default;
};

/// What one training step costs on one device.
struct StepProfile {
  ModuleCost total;
  StepMemory memory;                      // of our executor
  Bytes eager_peak = 0, eager_saved = 0;  // of the same step in eager PyTorch
  BytesPerParameter per_parameter;
  std::vector<Seconds> op_seconds;  // by op
  std::vector<ModuleCost> modules;  // in order of first appearance; they add up to `total`
  std::vector<TreeRow> tree;        // parents before children, modules alike folded
  std::vector<TargetCost> targets;  // by name
};

/// Walks the ops in execution order. Modules are cut to `depth` parts of their path: "transformer.h.0.mlp" of
/// depth 3 counts for "transformer.h.0". Where ops were measured, their hidden bytes come from there too.
/// REQUIRES: check(model) is empty.
StepProfile profile_step(const Model& model, const Prices& prices, int depth, const Upkeep& upkeep = {});

}  // namespace partita::profile
