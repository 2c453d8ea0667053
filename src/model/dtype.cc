#include "model/dtype.h"

#include "base/error.h"
#include "base/names.h"

namespace partita::model {
namespace {

struct Row {
  DType dtype;
  std::string_view name, short_name;
  Bytes bytes;
  bool floating;
};
constexpr Row kRows[] = {
    {DType::kFloat64, "float64", "fp64", 8, true},    {DType::kFloat32, "float32", "fp32", 4, true},
    {DType::kBFloat16, "bfloat16", "bf16", 2, true},  {DType::kFloat16, "float16", "fp16", 2, true},
    {DType::kInt64, "int64", "i64", 8, false},        {DType::kInt32, "int32", "i32", 4, false},
    {DType::kInt16, "int16", "i16", 2, false},        {DType::kInt8, "int8", "i8", 1, false},
    {DType::kUInt8, "uint8", "u8", 1, false},         {DType::kBool, "bool", "b1", 1, false},
    {DType::kComplex64, "complex64", "c64", 8, true}, {DType::kComplex128, "complex128", "c128", 16, true},
};

const Row& row(DType dtype) { return kRows[static_cast<int>(dtype)]; }

}  // namespace

std::string_view dtype_name(DType dtype) { return row(dtype).name; }
Bytes dtype_bytes(DType dtype) { return row(dtype).bytes; }
bool is_floating(DType dtype) { return row(dtype).floating; }
bool is_complex(DType dtype) { return dtype == DType::kComplex64 || dtype == DType::kComplex128; }

std::optional<DType> find_dtype(std::string_view name) {
  for (const Row& row : kRows)
    if (row.name == name || row.short_name == name) return row.dtype;
  return std::nullopt;
}

DType parse_dtype(std::string_view name, std::string_view where) {
  if (std::optional<DType> found = find_dtype(name)) return *found;
  std::vector<std::string> known;
  for (const Row& row : kRows) known.emplace_back(row.name);
  bool eight_bits = name.starts_with("fp8") || name.starts_with("float8");
  input_error("{}: unknown dtype \"{}\"; there are {}{}", where, name, fmt::join(known, ", "),
              eight_bits ? "; 8-bit floats are not there yet" : did_you_mean(name, known));
}

}  // namespace partita::model
