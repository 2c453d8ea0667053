#pragma once

#include <optional>
#include <vector>

#include "model/model.h"

namespace partita::model::build {

/// Sizes and strides of a tensor, in elements: what PyTorch's kernels decide a result's layout from.
struct Dims {
  Shape shape, strides;
};

Shape contiguous_strides(const Shape& shape);
bool is_contiguous(const Dims& dims);

/// What an elementwise kernel makes of these operands: broadcast sizes, and the order of dimensions that
/// TensorIterator keeps. Example: two [4,2,16] tensors with strides [32,1,2] give strides [32,1,2]. REQUIRES:
/// sizes that broadcast.
Dims elementwise(const std::vector<Dims>& operands);

/// The layout of `empty_like`: the operand's own where it has no gaps, else dense in the same order of
/// dimensions.
Dims like(const Dims& operand);

/// Dense in the given order of dimensions, outermost first. Example: [4,2,16,8] in order {0,2,1,3}.
Dims permuted(const Shape& shape, const std::vector<int>& order);

/// Strides of the same elements seen with other sizes; none where only a copy could show them so.
std::optional<Shape> view_strides(const Dims& dims, const Shape& shape);

/// Sizes with the one -1 among them replaced by what `elements` leaves.
Shape resolved(Shape sizes, int64_t elements);

}  // namespace partita::model::build
