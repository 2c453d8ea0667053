#pragma once

#include "model/row.h"

namespace partita::model {

/// Where a convolution finds what, and its attributes. `image`: what slides past the window; `result`: what
/// it makes. A transposed one is the same relation with these two swapped.
struct Convolution {
  Shape image, weight, result;
  std::vector<int64_t> stride, padding, dilation;
  int64_t groups;
  bool transposed;

  /// One of the three above for dimension `d` of the image.
  static int64_t at(const std::vector<int64_t>& values, size_t d) {
    return values.size() == 1 ? values[0] : values[d - 2];
  }
  /// Windows lie side by side (patch embeddings, 1 x 1): the image's dimension is (window, place in it).
  bool tiles(size_t d) const {
    return at(stride, d) == weight[d] && at(padding, d) == 0 && at(dilation, d) == 1 &&
           image[d] == result[d] * weight[d];
  }
};

/// `first`: which argument is the stride. Mismatch where dimensions or attributes do not belong together.
Convolution attributes(const OpView& op, size_t first, const Shape& in, const Shape& weight,
                       const Shape& out);

/// Places of one sample and channel, or of a window.
inline int64_t pixels(const Shape& shape) { return numel({shape.begin() + 2, shape.end()}); }

/// Hidden temporary bytes of one call on one thread, as docs/workspace.md has them: in float64 exact unless
/// windows are dilated or transposed; else and in float32 no less than what is held; 0 for half precisions.
Bytes convolution_workspace(const OpView& local);
Bytes convolution_backward_workspace(const OpView& local);

}  // namespace partita::model
