#include "run/host_tensor.h"

#include <cstring>

#include "base/error.h"
#include "run/cpu/strided.h"
#include "run/number.h"

namespace partita::run {

// Every leaf is a dimension of its own on both sides.
Walk walk_box(const Shape& shape, const Leaves& leaves, const Box& box, const TensorType& type) {
  CHECK_EQ(leaves.size(), shape.size());
  CHECK_EQ(box.size(), shape.size());
  CHECK(shape_of(box) == type.shape);
  Walk walk;
  Shape strides = row_major(shape);
  for (size_t d = 0; d < shape.size(); ++d) {
    CHECK_EQ(box[d].size(), leaves[d].size());
    int64_t whole = strides[d], local = type.strides[d], size = 1;
    for (size_t l = leaves[d].size(); l-- > 0;) {
      const Interval& interval = box[d][l];
      CHECK(0 <= interval.begin && interval.begin <= interval.end && interval.end <= leaves[d][l]);
      walk.from += interval.begin * whole;
      walk.extents.push_back({interval.length(), local, whole});
      whole *= leaves[d][l];
      local *= interval.length();
      size *= leaves[d][l];
    }
    CHECK_EQ(size, shape[d]);
  }
  return walk;
}

HostTensor::HostTensor(Shape sizes, DType kind)
    : shape(std::move(sizes)), dtype(kind), data(numel(shape) * dtype_bytes(dtype)) {}

HostViews views_of(const HostTensors& tensors) {
  HostViews views;
  for (const auto& [name, tensor] : tensors) views.emplace(name, tensor);
  return views;
}

LeafSizes plain_leaves(const Model& model) {
  LeafSizes sizes;
  for (const Tensor& tensor : model.tensors) {
    Leaves& leaves = sizes.emplace_back();
    for (int64_t size : tensor.shape)
      leaves.push_back(size == 1 ? std::vector<int64_t>{} : std::vector{size});
  }
  return sizes;
}

LeafSizes leaves_of(const Model& model, const Atoms& atoms) {
  LeafSizes sizes;
  for (size_t t = 0; t < model.tensors.size(); ++t)
    sizes.push_back(leaf_sizes(atoms, TensorId{static_cast<int32_t>(t)}));
  return sizes;
}

Shape row_major(const Shape& shape) {
  Shape strides(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0; stride *= shape[d]) strides[d] = stride;
  return strides;
}

Walk walk_dense(const TensorType& type) {
  Walk walk;
  Shape dense = row_major(type.shape);
  for (size_t d = 0; d < dense.size(); ++d)
    walk.extents.push_back({type.shape[d], type.strides[d], dense[d]});
  return walk;
}

void slice_box(const HostView& whole, const Leaves& leaves, const Box& box, std::byte* local,
               const TensorType& type) {
  CHECK(whole.dtype == type.dtype);
  Walk walk = walk_box(whole.shape, leaves, box, type);
  Bytes element = dtype_bytes(type.dtype);
  copy_strided(local, whole.data + walk.from * element, std::move(walk.extents), element);
}

void place_box(HostTensor& whole, const Leaves& leaves, const Box& box, const std::byte* local,
               const TensorType& type) {
  CHECK(whole.dtype == type.dtype);
  Walk walk = walk_box(whole.shape, leaves, box, type).reversed();
  Bytes element = dtype_bytes(type.dtype);
  copy_strided(whole.data.data() + walk.to * element, local, std::move(walk.extents), element);
}

HostTensor copy_of(const HostView& view) {
  HostTensor copy(view.shape, view.dtype);
  if (!copy.data.empty()) std::memcpy(copy.data.data(), view.data, copy.data.size());
  return copy;
}

std::vector<double> to_doubles(const HostView& tensor) {
  std::vector<double> values(numel(tensor.shape));
  visit_dtype(tensor.dtype, [&]<class T>(T) {
    const T* data = reinterpret_cast<const T*>(tensor.data);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(data[i]);
  });
  return values;
}

HostTensor from_doubles(Shape shape, DType dtype, const std::vector<double>& values) {
  HostTensor tensor(std::move(shape), dtype);
  CHECK_EQ(static_cast<int64_t>(values.size()), numel(tensor.shape));
  visit_dtype(dtype, [&]<class T>(T) {
    T* data = reinterpret_cast<T*>(tensor.data.data());
    for (size_t i = 0; i < values.size(); ++i) data[i] = static_cast<T>(values[i]);
  });
  return tensor;
}

}  // namespace partita::run
