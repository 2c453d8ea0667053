#include "model/ops/workspace.h"

#include <algorithm>

#include "model/ops/common.h"

namespace partita::model {
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
  if (!local.dense(0) && !local.by_place(0)) return 0;
  bool together = numel(x) == x[0] * x[1] || !local.dense(0);
  return (together ? 3 : 2) * x[1] * dtype_bytes(local.dtype);
}

Bytes batch_norm_backward_workspace(const OpView& local) { return bytes_of_input(local, 1); }

Bytes embedding_workspace(const OpView& local) { return dense_copy(local, 1); }

Bytes embedding_backward_workspace(const OpView& local) {
  return dense_copy(local, 0) + dense_copy(local, 1);
}

namespace {

enum BagMode : int64_t { kBagSum, kBagMean, kBagMax };

// A kernel for float32 sums bag by bag and does not ask which bag an index is in.
bool sums_bags(const OpView& local, int64_t mode, int64_t padding) {
  return local.dtype == DType::kFloat32 && mode == kBagSum && padding < 0;
}

// _embedding_bag(table, indices, offsets, by frequency, mode, sparse, weights, last offset, padding)
int64_t bag_mode(const OpView& local) { return int_argument(*local.op, 4, "mode", kBagSum); }

bool sums_bags(const OpView& local) {
  return sums_bags(local, bag_mode(local), int_argument(*local.op, 8, "padding_idx", -1));
}

// Sizes and maxima are made with a last offset and cut to the bags.
Bytes last_offset(const OpView& local) {
  return bool_argument(*local.op, 7, "include_last_offset", false) ? kNumber : 0;
}

}  // namespace

Bytes embedding_bag_workspace(const OpView& local) {
  if (sums_bags(local)) return 0;
  int64_t mode = bag_mode(local), bags = local.out[0][0];
  Bytes later = kNumber * (numel(local.out[2]) + numel(local.out[3])) + last_offset(local);
  Bytes divided = mode == kBagMean ? bags * (2 * kNumber + dtype_bytes(local.dtype)) : 0;
  Bytes largest = mode == kBagMax ? bags * kNumber : 0;
  return std::max({kNumber * (numel(local.in[1]) + 1) - later, divided, largest, Bytes{0}});
}

Bytes embedding_bag_retained(const OpView& local) {
  Bytes made = sums_bags(local) ? 0 : kNumber * (numel(local.in[1]) + 1);
  return made - kNumber * numel(local.out[1]) + last_offset(local);
}

// (grad, indices, offsets, bag of each, sizes, maxima, rows, by frequency, mode, sparse, weights, padding)
Bytes embedding_bag_backward_workspace(const OpView& local) {
  constexpr int kWeights = 6;
  int64_t mode = int_argument(*local.op, 8, "mode", kBagSum), indices = numel(local.in[1]);
  Bytes element = dtype_bytes(local.dtype), copy = dense_copy(local, 0);
  if (mode == kBagMax) return copy + local.in[0][0] * (local.in[0][1] * (kNumber + element) + kNumber);
  Bytes bags = sums_bags(local, mode, int_argument(*local.op, 11, "padding_idx", -1)) ? indices + 1 : 0;
  Bytes weights = local.in.size() > kWeights ? indices * element : 0;
  return copy + 3 * kNumber * indices + kNumber * bags + weights;
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

namespace {

constexpr int64_t kMean = 1;

bool is_mean(const OpView& local, size_t position) {
  return int_argument(*local.op, position, "reduction", kMean) == kMean;
}

Bytes sum_of_losses(const OpView& local, size_t position) {
  if (!local.out[0].empty()) return 0;
  return dtype_bytes(local.dtype) + (is_mean(local, position) ? mean_workspace(local) : 0);
}

}  // namespace

Bytes cross_entropy_workspace(const OpView& local) { return sum_of_losses(local, 3); }

Bytes soft_margin_workspace(const OpView& local) { return sum_of_losses(local, 2); }

Bytes cross_entropy_backward_workspace(const OpView& local) {
  return is_mean(local, 4) ? mean_workspace(local) : 0;
}

Bytes soft_margin_backward_workspace(const OpView& local) { return 2 * bytes_of_input(local, 1); }

namespace {

Bytes losses_of(const OpView& local) { return numel(local.in[0]) * dtype_bytes(local.dtype); }

Bytes error_workspace(const OpView& local, Bytes conversions) {
  Bytes converted = conversion_workspace(local);
  if (!local.out[0].empty()) return converted;
  return losses_of(local) + conversions * converted + (is_mean(local, 2) ? mean_workspace(local) : 0);
}

// A number is of the dtype of the tensors beside it.
DType common_dtype(const OpView& local) {
  DType common = local.dtype;
  for (size_t k = 0; k < local.in_dtypes.size(); ++k)
    if (local.in_rank(static_cast<int>(k)) > 0 && is_floating(local.in_dtypes[k]) &&
        dtype_bytes(local.in_dtypes[k]) > dtype_bytes(common))
      common = local.in_dtypes[k];
  return common;
}

}  // namespace

Bytes squared_error_workspace(const OpView& local) { return error_workspace(local, 2); }

Bytes huber_workspace(const OpView& local) { return error_workspace(local, 1); }

Bytes squared_error_retained(const OpView& local) {
  return local.out[0].empty() ? losses_of(local) - dtype_bytes(local.dtype) : 0;
}

Bytes promoted_workspace(const OpView& local) {
  OpView common = local;
  common.dtype = common_dtype(local);
  Bytes result = common.dtype == local.dtype ? 0 : numel(local.out[0]) * dtype_bytes(common.dtype);
  return conversion_workspace(common) + result;
}

Bytes gelu_backward_workspace(const OpView& local) {
  const Arg& approximate = argument(*local.op, 2, "approximate");
  bool exact = approximate.kind != Arg::kText || approximate.text == "none";
  if (local.dtype != DType::kFloat32 || !exact || !local.dense(1)) return 0;
  return dense_copy(local, 0) + (local.makes_dense(0) ? 0 : numel(local.out[0]) * dtype_bytes(local.dtype));
}

Bytes repeat_workspace(const OpView& local) { return 4 * kNumber * static_cast<Bytes>(local.out[0].size()); }

Bytes roll_workspace(const OpView& local) {
  Bytes more = static_cast<Bytes>(ints_argument(*local.op, 2, "dims").size()) - 1;
  return more > 0 ? more * bytes_of_input(local, 0) : 0;
}

Bytes number_power_workspace(const OpView& local) {
  bool converts = local.dtype != DType::kFloat64 || argument(*local.op, 0, "self").kind == Arg::kInt;
  return kNumber + (converts ? dtype_bytes(local.dtype) : 0);
}

Bytes first_copy_workspace(const OpView& local) { return dense_copy(local, 0); }

Bytes two_copies_workspace(const OpView& local) { return dense_copy(local, 0) + dense_copy(local, 1); }

Bytes image_copy_workspace(const OpView& local) { return local.by_place(0) ? 0 : dense_copy(local, 0); }

Bytes infinity_workspace(const OpView& local) {
  DType dtype = local.in_dtypes.empty() ? local.dtype : local.in_dtypes[0];
  if (!is_floating(dtype)) return 0;
  return bytes_of_input(local, 0) + kNumber + (dtype == DType::kFloat64 ? 0 : dtype_bytes(dtype));
}

Bytes index_select_workspace(const OpView& local) {
  bool second = wrap_dim(int_argument(*local.op, 1, "dim", 0), local.in_rank(0)) == 1;
  return second ? dense_copy(local, 0) : 0;
}

Bytes shift_workspace(const OpView&) { return kNumber; }

Bytes image_backward_workspace(const OpView& local) {
  auto turned = [&](int k) { return local.by_place(k) && !local.dense(k); };
  if (turned(0)) return 0;
  Bytes bytes = dense_copy(local, 0) + (turned(1) ? numel(local.out[0]) * dtype_bytes(local.dtype) : 0);
  for (int k = 2; k < static_cast<int>(local.in.size()); ++k)
    if (turned(k)) bytes += bytes_of_input(local, k);
  return bytes;
}

Bytes median_workspace(const OpView& local) {
  bool all = local.op->target == "aten.median.default" || local.in[0].empty();
  int64_t dim = all ? 0 : wrap_dim(int_argument(*local.op, 1, "dim", -1), local.in_rank(0));
  bool lines = !all && local.dense(0) && dim == local.in_rank(0) - 1;
  return lines ? 0 : bytes_of_input(local, 0);
}

Bytes kth_workspace(const OpView& local) { return bytes_of_input(local, 0) + kNumber * numel(local.in[0]); }

Bytes sort_workspace(const OpView& local) {
  const Sizes& x = local.in[0];
  size_t position = local.op->target == "aten.sort.stable" ? 2 : 1;
  if (x.empty()) return 0;
  return kNumber * x[wrap_dim(int_argument(*local.op, position, "dim", -1), local.in_rank(0))];
}

Bytes log_sum_workspace(const OpView& local) {
  return (numel(local.in[0]) + numel(local.out[0])) * dtype_bytes(local.dtype);
}

Bytes scatter_mean_workspace(const OpView& local) {
  if (argument(*local.op, 4, "reduce").text != "mean") return 0;
  int64_t made = numel(local.out[0]), written = numel(local.in[2]);
  return (made + written + 1) * dtype_bytes(local.dtype) + made + kNumber;
}

Bytes conversion_workspace(const OpView& local) {
  Bytes bytes = 0;
  for (size_t k = 0; k < local.in_dtypes.size() && k < local.in.size(); ++k)
    if (local.in_dtypes[k] != local.dtype) bytes += numel(local.in[k]) * dtype_bytes(local.dtype);
  return bytes;
}

}  // namespace partita::model
