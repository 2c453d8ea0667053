#pragma once

#include <string>
#include <vector>

#include "layout/atoms.h"
#include "layout/reducer.h"

namespace partita::layout {

/// How a tensor lies along one axis: whole everywhere, cut at one leaf of one dimension, or as addends.
struct AxisLayout {
  enum Kind : uint8_t { kReplicated, kShard, kPartial };
  Kind kind = kReplicated;
  int32_t dim = -1, leaf = -1;      // kShard
  Reducer reducer = Reducer::kSum;  // kPartial: what makes the value of the addends

  static AxisLayout shard(int dim, int leaf) { return {kShard, dim, leaf}; }
  static AxisLayout partial(Reducer reducer = Reducer::kSum) { return {kPartial, -1, -1, reducer}; }
  auto operator<=>(const AxisLayout&) const = default;
};

/// One entry per axis, space axes in mesh order, then the time axis of micro-batches. A leaf cut by several
/// axes is cut by the first one first.
using Layout = std::vector<AxisLayout>;

/// The piece at these coordinates (one per axis) of a tensor in this layout. Addends are not part of a box.
/// Example: [8, 64] cut at dimension 0 over axes of size 2 and 2, coordinates (1, 0): rows [4, 6).
Box box_of(const Box& whole, const Layout& layout, const std::vector<int64_t>& axis_sizes,
           const std::vector<int64_t>& coordinates);

/// Dimensions of a tensor with these strides as they lie in memory, the one with the largest stride first.
std::vector<size_t> memory_order(const Shape& like);

/// Strides of a dense tensor of `shape` whose dimensions lie in memory in the order of `like` (largest stride
/// first).
Shape compact_strides(const Shape& shape, const Shape& like);

/// Are its elements one block of memory, in some order of dimensions, without gaps and without sharing?
/// Example: [2, 3] with strides {1, 2} is; a slice of columns and an expanded dimension are not.
bool is_dense(const Tensor& tensor);

/// "R", "S(1.0)", "P" of a sum, "P(max)" per axis: "[S(0.0) R]".
std::string to_text(const Layout& layout);

}  // namespace partita::layout
