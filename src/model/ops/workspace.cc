#include "model/ops/workspace.h"

#include <algorithm>

namespace partita {
namespace {

constexpr int64_t kKeyBlock = 512;
constexpr Bytes kNumber = 8;  // a double or an int64 as a tensor

// The kernel takes larger blocks of queries for longer sequences.
int64_t query_block(int64_t queries) {
  return std::min<int64_t>(queries, queries >= 768 ? 256 : queries >= 192 ? 64 : 32);
}

}  // namespace

Bytes attention_workspace(const OpView& local) {
  const Shape &query = local.in[0], &key = local.in[1];
  int64_t row = std::min(key[2], kKeyBlock) + 2 + query[3];
  return query_block(query[2]) * row * dtype_bytes(local.dtype);
}

Bytes attention_backward_workspace(const OpView& local) {
  const Shape &query = local.in[1], &key = local.in[2];
  int64_t row = 2 * std::min(key[2], kKeyBlock) + 1;
  return query_block(query[2]) * row * dtype_bytes(local.dtype);
}

Bytes layer_norm_backward_workspace(const OpView& local) {
  // native_layer_norm_backward(grad, x, normalized_shape, mean, rstd, weight, bias, mask) -> gx, gw, gb
  if (!local.has_out[1] && !local.has_out[2]) return 0;
  return 2 * numel(local.out[local.has_out[1] ? 1 : 2]) * dtype_bytes(local.dtype);
}

Bytes group_norm_backward_workspace(const OpView& local) {
  return 2 * local.in[1][0] * local.in[1][1] * dtype_bytes(local.dtype);
}

Bytes mean_workspace(const OpView& local) { return kNumber + dtype_bytes(local.dtype); }

Bytes squared_error_workspace(const OpView& local) {
  return local.out[0].empty() ? numel(local.in[0]) * dtype_bytes(local.dtype) : 0;
}

Bytes repeat_workspace(const OpView& local) { return 4 * kNumber * static_cast<Bytes>(local.out[0].size()); }

Bytes number_power_workspace(const OpView& local) {
  return kNumber + (local.dtype == DType::kFloat64 ? 0 : dtype_bytes(local.dtype));
}

Bytes conversion_workspace(const OpView& local) {
  Bytes bytes = 0;
  for (size_t k = 0; k < local.in_dtypes.size() && k < local.in.size(); ++k)
    if (local.in_dtypes[k] != local.dtype) bytes += numel(local.in[k]) * dtype_bytes(local.dtype);
  return bytes;
}

}  // namespace partita
