#include "run/torch/value.h"

#include <ATen/EmptyTensor.h>

#include "base/error.h"

namespace partita::run {
namespace {

constexpr at::ScalarType kTypes[] = {at::kDouble, at::kFloat, at::kBFloat16,     at::kHalf,
                                     at::kLong,   at::kInt,   at::kShort,        at::kChar,
                                     at::kByte,   at::kBool,  at::kComplexFloat, at::kComplexDouble};

}  // namespace

at::ScalarType scalar_type(DType dtype) { return kTypes[static_cast<int>(dtype)]; }

DType dtype_of(at::ScalarType type) {
  for (size_t i = 0; i < std::size(kTypes); ++i)
    if (kTypes[i] == type) return static_cast<DType>(i);
  throw RunError(fmt::format("a tensor of dtype {}, which Partita does not know", c10::toString(type)));
}

at::Tensor allocate(const TensorType& type) {
  return at::detail::empty_strided_cpu(type.shape, type.strides, scalar_type(type.dtype));
}

TensorSpan span_of(const at::Tensor& tensor) {
  TensorSpan span;
  span.data = static_cast<std::byte*>(tensor.mutable_data_ptr());
  span.type = {tensor.sizes().vec(), tensor.strides().vec(), dtype_of(tensor.scalar_type())};
  for (size_t d = 0; d < span.type.shape.size(); ++d)
    if (span.type.shape[d] == 1) span.type.strides[d] = 1;
  return span;
}

}  // namespace partita::run
