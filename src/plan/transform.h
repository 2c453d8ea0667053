#pragma once

#include <string>
#include <vector>

#include "layout/layout.h"
#include "plan/plan.h"

namespace partita::plan {

/// Where an op stands relative to the loop over micro-batches.
enum class Level : uint8_t { kBefore, kInside, kAfter };

/// One op after transform: how its pieces lie. `need[i]` is the layout its i-th input must have, `made[o]`
/// the one its o-th output gets; the piece at any coordinates follows with box_of.
struct SplitOp {
  std::vector<Layout> need, made;
  Level level = Level::kInside;
  int loop = -1;  // the LoopRule whose loop it is inside of
};

/// What an op does along one axis: nothing, splits a loop, or lets Partial inputs of a linear set pass.
struct AxisChoice {
  int loop = -1;                           // of OpLoops::loops
  const std::vector<int>* pass = nullptr;  // of OpLoops::linear
};

/// Writes what `choice` means along `axis` into the layouts of `split`.
void split_along(const OpLoops& op, const AxisChoice& choice, size_t axis, SplitOp& split);

/// Every op with its split over the axes of the plan: the first primitive. No devices, no order, no transfers
/// yet.
struct Transformed {
  std::vector<int64_t> axis_sizes;  // mesh axes, then micro-batches, then loops by name
  size_t loop_axes = 0;
  std::vector<SplitOp> ops;
  std::vector<Layout>
      stored;  // per tensor: parameters, buffers, constants and batch inputs as they lie at rest
  std::vector<Layout>
      updated;  // per tensor: parameters as the optimizer updates them, their states, and their gradients
  std::vector<bool> light;  // per op: no trainable parameter leads to it, any device may repeat it

  size_t time_axis() const { return axis_sizes.size() - 1 - loop_axes; }
  /// The axis of each LoopRule.
  std::vector<size_t> loop_axis;
};

/// REQUIRES: check(plan, model, atoms) is empty; `model` is decomposed when anything is split.
/// InputError when an op inside the loop needs a value that is complete only after it: names both and says
/// why.
Transformed transform(const Model& model, const Atoms& atoms, const Plan& plan);

}  // namespace partita::plan
