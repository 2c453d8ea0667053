#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "layout/atoms.h"
#include "layout/box.h"
#include "model/model.h"
#include "run/device_tensor.h"

namespace partita::run {

/// A whole value on the host: dense, row-major.
struct HostTensor {
  Shape shape;
  DType dtype = DType::kFloat32;
  std::vector<std::byte> data;

  HostTensor() = default;
  /// Zeros.
  HostTensor(Shape shape, DType dtype);
  bool operator==(const HostTensor&) const = default;
};

/// The same, in memory that somebody else owns.
struct HostView {
  Shape shape;
  DType dtype = DType::kFloat32;
  const std::byte* data = nullptr;

  HostView() = default;
  HostView(Shape shape, DType dtype, const std::byte* data)
      : shape(std::move(shape)), dtype(dtype), data(data) {}
  HostView(const HostTensor& tensor) : HostView(tensor.shape, tensor.dtype, tensor.data.data()) {}
};

/// Values by tensor name.
using HostViews = std::map<std::string, HostView>;
using HostTensors = std::map<std::string, HostTensor>;
HostViews views_of(const HostTensors& tensors);

/// Sizes of the leaves of every dimension of one tensor, outermost first; a dimension of size 1 has none.
using Leaves = std::vector<std::vector<int64_t>>;
/// By tensor.
using LeafSizes = std::vector<Leaves>;
/// One leaf a dimension: for programs whose boxes do not cut inside dimensions.
LeafSizes plain_leaves(const Model& model);
/// The leaves of an atom analysis.
LeafSizes leaves_of(const Model& model, const Atoms& atoms);

/// A walk from a dense whole of this shape to a part of it that `box` cuts out and that lies as `type` says.
/// REQUIRES: the leaves multiply to the shape, the box lies inside them and has the shape of `type`.
Walk walk_box(const Shape& shape, const Leaves& leaves, const Box& box, const TensorType& type);

/// A walk from a dense tensor to one that lies as `type` says.
Walk walk_dense(const TensorType& type);

/// Copies `box` of `whole` into memory of the host laid out as `type` says.
/// Example: heads [1,3) of a [128, 3*4*32] weight, leaves {{128}, {3,4,32}}, land in a dense [128, 3*2*32].
/// REQUIRES: as walk_box.
void slice_box(const HostView& whole, const Leaves& leaves, const Box& box, std::byte* local,
               const TensorType& type);
/// The way back.
void place_box(HostTensor& whole, const Leaves& leaves, const Box& box, const std::byte* local,
               const TensorType& type);

/// A value of its own.
HostTensor copy_of(const HostView& view);

/// Dense row-major strides.
Shape row_major(const Shape& shape);

/// Every element as a double.
std::vector<double> to_doubles(const HostView& tensor);
/// Every element rounded to `dtype`.
HostTensor from_doubles(Shape shape, DType dtype, const std::vector<double>& values);

}  // namespace partita::run
