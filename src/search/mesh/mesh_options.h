#pragma once

#include "cost/prices.h"
#include "plan/transform.h"

namespace partita::search {

/// A way to run an op on a mesh.
struct MeshOption : SplitOp {
  uint32_t passes = 0;  // axes, as bits, over which its inputs must be addends already, as some op made them
};

/// Every way to run an op on a mesh: along each axis nothing, one of its loops, or Partial inputs passing
/// through; along three axes at most two different things. Equal ones stand once; the first is the op
/// repeated everywhere. `axis_sizes`: space axes, then a time axis of 1. Example: mm on one axis: whole,
/// rows, columns, addends of the sum, Partial left, Partial right.
std::vector<MeshOption> mesh_options(const OpLoops& op, size_t inputs, size_t outputs,
                                     const std::vector<int64_t>& axis_sizes);

/// Seconds of the largest piece of an op run this way, on the first device.
Seconds piece_seconds(const Model& model, const Atoms& atoms, const Op& op, const SplitOp& option,
                      const std::vector<int64_t>& axis_sizes, const Prices& prices);

/// Elements of the largest piece of a tensor in this layout.
int64_t piece_elements(const Atoms& atoms, TensorId tensor, const Layout& layout,
                       const std::vector<int64_t>& axis_sizes);

}  // namespace partita::search
