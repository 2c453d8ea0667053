#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "program/program.h"

namespace partita::run {

/// Where something begins in the memory of a device. Only the Memory of that device looks at what lies there:
/// the host may not be able to.
struct DevicePointer {
  void* address = nullptr;
  bool operator==(const DevicePointer&) const = default;
};

/// A tensor of a rank: where it begins and how it is laid out.
struct TensorSpan {
  DevicePointer data;
  TensorType type;
};

/// The same without owning anything: shape and strides lie with the tensor.
struct TensorView {
  DevicePointer data;
  const int64_t *shape = nullptr, *strides = nullptr;
  int32_t dims = 0;
  DType dtype = DType::kFloat32;
};
inline TensorView view_of(const TensorSpan& span) {
  return {span.data, span.type.shape.data(), span.type.strides.data(),
          static_cast<int32_t>(span.type.shape.size()), span.type.dtype};
}

/// One dimension of a walk over two tensors at once; strides in elements.
struct Extent {
  int64_t size = 1, to = 0, from = 0;
};

/// Elements of two tensors that belong together: where each side begins, and how both go on.
/// Example: row 2 of a 4 x 8 matrix and a dense 1 x 8: {.from = 16, .extents = {{1, 8, 8}, {8, 1, 1}}}.
struct Walk {
  int64_t to = 0, from = 0;  // elements before the first one
  std::vector<Extent> extents;

  /// The way back.
  Walk reversed() const {
    Walk walk{from, to, extents};
    for (Extent& e : walk.extents) std::swap(e.to, e.from);
    return walk;
  }
};

}  // namespace partita::run
