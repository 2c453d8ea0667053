#include "run/parts.h"

namespace partita::run {
namespace {

Leaves leaves_of(const Shape& shape) {
  Leaves leaves;
  for (int64_t size : shape) leaves.push_back({size});
  return leaves;
}

Box box_of(const Tensor& part) {
  Box box;
  for (int64_t size : part.shape) box.push_back({{0, size}});
  box[part.part.dim] = {{part.part.begin, part.part.begin + part.shape[part.part.dim]}};
  return box;
}

TensorType dense(const Tensor& part, DType dtype) { return {part.shape, row_major(part.shape), dtype}; }

}  // namespace

HostViews with_parts(const Model& model, HostViews weights, HostTensors& storage) {
  for (const Tensor& tensor : model.tensors) {
    if (!tensor.part.whole) continue;
    auto whole = weights.find(model[tensor.part.whole].name);
    if (whole == weights.end() || whole->second.shape != model[tensor.part.whole].shape ||
        whole->second.dtype != tensor.dtype)
      continue;
    HostTensor& copy = storage.emplace(tensor.name, HostTensor(tensor.shape, tensor.dtype)).first->second;
    slice_box(whole->second, leaves_of(whole->second.shape), box_of(tensor), copy.data.data(),
              dense(tensor, tensor.dtype));
    weights.emplace(tensor.name, copy);
  }
  return weights;
}

void join_parts(const Model& model, HostTensors& values) {
  for (const Tensor& tensor : model.tensors) {
    auto piece = values.find(tensor.name);
    if (!tensor.part.whole || piece == values.end()) continue;
    const Tensor& whole = model[tensor.part.whole];
    DType dtype = piece->second.dtype;
    HostTensor& joined = values.try_emplace(whole.name, whole.shape, dtype).first->second;
    place_box(joined, leaves_of(whole.shape), box_of(tensor), piece->second.data.data(),
              dense(tensor, dtype));
    values.erase(piece);
  }
}

}  // namespace partita::run
