#include "run/torch/value.h"

#include <ATen/EmptyTensor.h>

#include <utility>

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

TensorMaker::TensorMaker(Memory& memory)
    : memory_(memory),
      device_(memory.device()),
      keys_(c10::computeDispatchKey(std::nullopt, std::nullopt, device_)) {}

// As at::empty_strided does for every kind of device, with the bytes from our own hands.
at::Tensor TensorMaker::operator()(const TensorType& type) const {
  caffe2::TypeMeta dtype = c10::scalarTypeToTypeMeta(scalar_type(type.dtype));
  size_t bytes = at::detail::computeStorageNbytes(type.shape, type.strides, dtype.itemsize());
  Block block = memory_.allocate(static_cast<Bytes>(bytes));
  auto release = block.get_deleter();
  void* data = block.release();
  auto storage = c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes,
                                                       c10::DataPtr(data, data, release, device_),
                                                       c10::GetAllocator(device_.type()), /*resizable=*/true);
  at::Tensor tensor = at::detail::make_tensor<c10::TensorImpl>(std::move(storage), keys_, dtype);
  tensor.unsafeGetTensorImpl()->set_sizes_and_strides(type.shape, type.strides);
  return tensor;
}

TensorSpan span_of(const at::Tensor& tensor) {
  TensorSpan span;
  span.data = {tensor.mutable_data_ptr()};
  span.type = {tensor.sizes().vec(), tensor.strides().vec(), dtype_of(tensor.scalar_type())};
  for (size_t d = 0; d < span.type.shape.size(); ++d)
    if (span.type.shape[d] == 1) span.type.strides[d] = 1;
  return span;
}

TensorView view_of(const at::Tensor& tensor) {
  return {{tensor.mutable_data_ptr()},
          tensor.sizes().data(),
          tensor.strides().data(),
          static_cast<int32_t>(tensor.dim()),
          dtype_of(tensor.scalar_type())};
}

}  // namespace partita::run
