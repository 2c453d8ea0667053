#pragma once

#include <ATen/core/TensorBody.h>

#include <array>

#include "program/program.h"
#include "run/communicator.h"

namespace partita::run {

at::ScalarType scalar_type(DType dtype);
/// Throws RunError for a dtype Partita has no name for.
DType dtype_of(at::ScalarType type);

/// Memory for a tensor of this type, contents undefined.
at::Tensor allocate(const TensorType& type);
/// The tensor's memory with its real strides. Dimensions of size 1 get stride 1: torch gives them any.
TensorSpan span_of(const at::Tensor& tensor);

/// The slots a body sees, by Space.
struct Slots {
  std::array<at::Tensor*, 3> base{};
  at::Tensor& operator[](Slot slot) const { return base[static_cast<int>(slot.space)][slot.index]; }
};

}  // namespace partita::run
