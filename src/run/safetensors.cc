#include "run/safetensors.h"

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/json.h"

namespace partita::run {
namespace {

constexpr size_t kLengthBytes = 8;
constexpr const char* kMetadata = "__metadata__";

struct Row {
  std::string_view name;
  DType dtype;
};
constexpr Row kTypes[] = {{"F64", DType::kFloat64}, {"F32", DType::kFloat32},  {"BF16", DType::kBFloat16},
                          {"F16", DType::kFloat16}, {"I64", DType::kInt64},    {"I32", DType::kInt32},
                          {"I16", DType::kInt16},   {"I8", DType::kInt8},      {"U8", DType::kUInt8},
                          {"BOOL", DType::kBool},   {"C64", DType::kComplex64}};

DType dtype_of(const JsonIn& in) {
  std::string name = in.text();
  for (const Row& row : kTypes)
    if (row.name == name) return row.dtype;
  in.fail(fmt::format("dtype {} has no counterpart here", name));
}

std::string_view name_of(DType dtype) {
  for (const Row& row : kTypes)
    if (row.dtype == dtype) return row.name;
  return "";
}

// The number of elements of a shape whose sizes are not negative and whose bytes lie in the file.
int64_t count_of(const JsonIn& in, const Shape& shape, int64_t most) {
  int64_t count = 1;
  for (int64_t size : shape) {
    if (size < 0 || (size > 0 && count > most / size)) in.fail("is larger than the file");
    count *= size;
  }
  return count;
}

HostTensor read_tensor(const JsonIn& in, std::string_view data) {
  in.only({"dtype", "shape", "data_offsets"});
  HostTensor tensor;
  tensor.dtype = dtype_of(in["dtype"]);
  tensor.shape = in["shape"].integers();
  int64_t size = static_cast<int64_t>(data.size());
  int64_t begin = in["data_offsets"][0].integer(0, size), end = in["data_offsets"][1].integer(begin, size);
  int64_t bytes = count_of(in["shape"], tensor.shape, size) * dtype_bytes(tensor.dtype);
  if (bytes != end - begin)
    in["data_offsets"].fail(fmt::format("{} bytes where the shape needs {}", end - begin, bytes));
  tensor.data.resize(bytes);
  if (bytes) std::memcpy(tensor.data.data(), data.data() + begin, bytes);
  return tensor;
}

}  // namespace

HostTensors parse_safetensors(std::string_view bytes, std::string_view where) {
  uint64_t length = 0;
  if (bytes.size() >= kLengthBytes) std::memcpy(&length, bytes.data(), kLengthBytes);
  if (bytes.size() < kLengthBytes || length > bytes.size() - kLengthBytes)
    input_error("{}: no safetensors file, or one cut short; write it again", where);
  Json header = parse_json(bytes.substr(kLengthBytes, length), where);
  JsonIn in(header, std::string(where));
  HostTensors tensors;
  for (const std::string& name : in.keys())
    if (name != kMetadata)
      tensors.emplace(name, read_tensor(in[name.c_str()], bytes.substr(kLengthBytes + length)));
  return tensors;
}

// Weights may have any size; read_file is for texts.
HostTensors load_safetensors(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::error_code unknown;
  uintmax_t size = std::filesystem::file_size(path, unknown);
  if (!in || unknown) input_error("{}: cannot read this file; does it exist?", path);
  std::string bytes(size, '\0');
  if (!in.read(bytes.data(), static_cast<std::streamsize>(size)))
    input_error("{}: cannot read all of this file", path);
  return parse_safetensors(bytes, path);
}

std::string to_safetensors(const HostTensors& tensors) {
  Json header = Json::object();
  size_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    header[name] = {{"dtype", name_of(tensor.dtype)},
                    {"shape", tensor.shape},
                    {"data_offsets", {offset, offset + tensor.data.size()}}};
    offset += tensor.data.size();
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the data are aligned
  uint64_t length = text.size();
  std::string bytes(reinterpret_cast<const char*>(&length), kLengthBytes);
  bytes += text;
  for (const auto& [name, tensor] : tensors)
    bytes.append(reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size());
  return bytes;
}

}  // namespace partita::run
