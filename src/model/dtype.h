#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/units.h"

namespace partita::model {

enum class DType : uint8_t {
  kFloat64,
  kFloat32,
  kBFloat16,
  kFloat16,
  kInt64,
  kInt32,
  kInt16,
  kInt8,
  kUInt8,
  kBool,
  kComplex64,
  kComplex128
};

/// PyTorch's name: "float32", "bool".
std::string_view dtype_name(DType dtype);
/// Throws InputError that names `where` for an unknown name; accepts bf16, fp16, fp32, fp64 too.
DType parse_dtype(std::string_view name, std::string_view where);
/// None for an unknown name.
std::optional<DType> find_dtype(std::string_view name);
Bytes dtype_bytes(DType dtype);
/// Complex dtypes are floating too.
bool is_floating(DType dtype);
bool is_complex(DType dtype);

}  // namespace partita::model
