#pragma once

#include "model/ops/common.h"

namespace partita::model {

struct SliceArguments {
  int64_t dim, start, step;
};

/// Reads (dim, start, end, step) from argument `first` on; `big` is the tensor that is cut.
SliceArguments slice_arguments(const Op& op, const Sizes& big, size_t first);

/// States that `small` is the slice of `big`. With a step it must take one of every `step` elements to the
/// end: then the dimension is (piece, step) and pieces may be split; else it stays whole.
void relate_slice_dim(const SliceArguments& s, DimRef big, DimRef small, int64_t big_size, int64_t small_size,
                      Relation& relation);

/// Bounds for local sizes. Splits of the inner part of a dimension keep a piece's share of it, so bounds
/// scale. Example: elements [8, 16) of 24 = (3, 8) with half of the 8: [4, 8) of 12.
void localize_slice(const SliceArguments& s, const Shape& whole_big, const Shape& local_big,
                    const Shape& local_small, size_t first, Op& op);

}  // namespace partita::model
