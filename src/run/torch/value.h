#pragma once

#include <ATen/core/TensorBody.h>

#include <array>

#include "program/program.h"
#include "run/memory.h"

namespace partita::run {

at::ScalarType scalar_type(DType dtype);
/// Throws RunError for a dtype Partita has no name for.
DType dtype_of(at::ScalarType type);

/// Makes torch's tensors in a Memory. REQUIRES: the Memory outlives it.
class TensorMaker {
 public:
  explicit TensorMaker(Memory& memory);

  /// A tensor of this type, contents undefined.
  at::Tensor operator()(const TensorType& type) const;
  Memory& memory() const { return memory_; }
  c10::Device device() const { return device_; }

 private:
  Memory& memory_;
  const c10::Device device_;
  const c10::DispatchKeySet keys_;
};

/// Where the tensor lies, with its real strides. Dimensions of size 1 get stride 1: torch gives them any.
TensorSpan span_of(const at::Tensor& tensor);
/// The same; shape and strides stay with the tensor.
TensorView view_of(const at::Tensor& tensor);

/// The slots a body sees, by Space.
struct Slots {
  std::array<at::Tensor*, 3> base{};
  at::Tensor& operator[](Slot slot) const { return base[static_cast<int>(slot.space)][slot.index]; }
};

}  // namespace partita::run
