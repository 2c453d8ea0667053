#pragma once

#include <cstdint>
#include <cstring>

#include "base/error.h"
#include "model/dtype.h"

namespace partita::run {

/// bfloat16 with rounding to nearest, ties to even; a NaN stays one.
struct BFloat16 {
  uint16_t bits = 0;

  BFloat16() = default;
  BFloat16(float value) {
    uint32_t wide;
    std::memcpy(&wide, &value, sizeof value);
    bits = value != value ? 0x7fc0 : static_cast<uint16_t>((wide + 0x7fff + ((wide >> 16) & 1)) >> 16);
  }
  operator float() const {
    uint32_t wide = uint32_t{bits} << 16;
    float value;
    std::memcpy(&value, &wide, sizeof value);
    return value;
  }
};

/// Calls `visit(T{})` with the C++ type of `dtype`.
template <class Visit>
decltype(auto) visit_dtype(DType dtype, const Visit& visit) {
  switch (dtype) {
    case DType::kFloat64:
      return visit(double{});
    case DType::kFloat32:
      return visit(float{});
    case DType::kBFloat16:
      return visit(BFloat16{});
    case DType::kFloat16:
      return visit(_Float16{});
    case DType::kInt64:
      return visit(int64_t{});
    case DType::kInt32:
      return visit(int32_t{});
    case DType::kInt16:
      return visit(int16_t{});
    case DType::kInt8:
      return visit(int8_t{});
    case DType::kUInt8:
      return visit(uint8_t{});
    case DType::kComplex64:
    case DType::kComplex128:
      bug(__FILE__, __LINE__, "complex numbers are neither drawn, summed nor compared");
    case DType::kBool:
      break;
  }
  return visit(bool{});
}

/// The type sums of T are made in.
template <class T>
struct SumOf {
  using Type = T;
};
template <>
struct SumOf<BFloat16> {
  using Type = float;
};
template <>
struct SumOf<_Float16> {
  using Type = float;
};

}  // namespace partita::run
