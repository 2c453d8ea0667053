#include "model/ops/workspace.h"

#include <algorithm>

#include "model/ops/common.h"

namespace partita {
namespace {

constexpr int64_t kKeyBlock = 512;
constexpr Bytes kNumber = 8;  // a double or an int64 as a tensor

// The kernel takes larger blocks of queries for longer sequences.
int64_t query_block(int64_t queries) {
  return std::min<int64_t>(queries, queries >= 768 ? 256 : queries >= 192 ? 64 : 32);
}

Bytes bytes_of_input(const OpView& local, int k) {
  DType dtype = k < static_cast<int>(local.in_dtypes.size()) ? local.in_dtypes[k] : local.dtype;
  return numel(local.in[k]) * dtype_bytes(dtype);
}

Bytes dense_copy(const OpView& local, int k) { return local.dense(k) ? 0 : bytes_of_input(local, k); }

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

Bytes layer_norm_workspace(const OpView& local) { return dense_copy(local, 0); }

Bytes layer_norm_backward_workspace(const OpView& local) {
  // native_layer_norm_backward(grad, x, normalized_shape, mean, rstd, weight, bias, mask) -> gx, gw, gb
  Bytes copies = dense_copy(local, 0) + dense_copy(local, 1);
  if (!local.has_out[1] && !local.has_out[2]) return copies;
  return copies + 2 * numel(local.out[local.has_out[1] ? 1 : 2]) * dtype_bytes(local.dtype);
}

Bytes group_norm_backward_workspace(const OpView& local) {
  return 2 * local.in[1][0] * local.in[1][1] * dtype_bytes(local.dtype);
}

Bytes batch_norm_workspace(const OpView& local) {
  const Shape& x = local.in[0];
  bool one_place = numel(x) == x[0] * x[1];
  return (one_place ? 3 : 2) * x[1] * dtype_bytes(local.dtype);
}

Bytes batch_norm_backward_workspace(const OpView& local) { return bytes_of_input(local, 1); }

Bytes embedding_workspace(const OpView& local) { return dense_copy(local, 1); }

Bytes embedding_backward_workspace(const OpView& local) {
  return dense_copy(local, 0) + dense_copy(local, 1);
}

Bytes safe_softmax_workspace(const OpView& local) {
  const Shape& x = local.in[0];
  int64_t rows =
      x.empty()
          ? 1
          : numel(x) /
                std::max<int64_t>(
                    x[wrap_dim(int_argument(*local.op, 1, "dim", -1), static_cast<int64_t>(x.size()))], 1);
  return numel(x) + rows + dtype_bytes(local.dtype);
}

Bytes mean_workspace(const OpView& local) { return kNumber + dtype_bytes(local.dtype); }

Bytes squared_error_workspace(const OpView& local) {
  constexpr int64_t kMean = 1;
  if (!local.out[0].empty()) return 0;
  bool mean = int_argument(*local.op, 2, "reduction", kMean) == kMean;
  return bytes_of_input(local, 0) + (mean ? mean_workspace(local) : 0);
}

Bytes squared_error_retained(const OpView& local) {
  return local.out[0].empty() ? bytes_of_input(local, 0) - dtype_bytes(local.dtype) : 0;
}

Bytes repeat_workspace(const OpView& local) { return 4 * kNumber * static_cast<Bytes>(local.out[0].size()); }

Bytes roll_workspace(const OpView& local) {
  Bytes more = static_cast<Bytes>(ints_argument(*local.op, 2, "dims").size()) - 1;
  return more > 0 ? more * bytes_of_input(local, 0) : 0;
}

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
