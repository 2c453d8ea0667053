#include "tensors.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>

#include "base/error.h"
#include "bind.h"
#include "run/torch/value.h"

namespace partita::python {

Given::Given(const TensorDict& tensors, const char* what) {
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.device().is_cpu())
      input_error("{}: {} is on {}, the runtime needs it on the CPU; try .cpu()", what, name,
                  tensor.device().str());
    at::Tensor dense = tensor.contiguous();
    views_.emplace(name, HostView(dense.sizes().vec(), dtype_of(dense.scalar_type()),
                                  static_cast<const std::byte*>(dense.const_data_ptr())));
    kept_.push_back(std::move(dense));
  }
}

namespace {

at::Tensor to_tensor(HostTensor value) {
  auto* owner = new HostTensor(std::move(value));
  return at::from_blob(
      owner->data.data(), owner->shape, [owner](void*) { delete owner; },
      at::TensorOptions().dtype(scalar_type(owner->dtype)));
}

}  // namespace

TensorDict to_tensors(HostTensors values) {
  TensorDict tensors;
  for (auto& [name, value] : values) tensors.emplace(name, to_tensor(std::move(value)));
  return tensors;
}

}  // namespace partita::python
