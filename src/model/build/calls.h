#pragma once

#include "model/build/graph.h"

// ATen calls: each writes one op and states the sizes, strides and dtype of what it makes.
namespace partita::model::build {

inline constexpr int64_t kToTheEnd = INT64_MAX;

// Elementwise. `target` is the ATen overload; sizes broadcast, dtypes promote.
TensorId unary(Graph& g, std::string_view target, TensorId x);
TensorId binary(Graph& g, std::string_view target, const Operand& a, const Operand& b);
/// The result is a bool tensor: eq.Scalar, ge.Tensor.
TensorId compare(Graph& g, std::string_view target, const Operand& a, const Operand& b);
TensorId add(Graph& g, const Operand& a, const Operand& b);
TensorId sub(Graph& g, const Operand& a, const Operand& b);
TensorId mul(Graph& g, const Operand& a, const Operand& b);
TensorId div(Graph& g, const Operand& a, const Operand& b);
TensorId power(Graph& g, TensorId x, const Operand& e);
TensorId where(Graph& g, TensorId condition, TensorId yes, TensorId no);
TensorId gelu(Graph& g, TensorId x, bool by_tanh);
TensorId to_dtype(Graph& g, TensorId x, DType dtype);

// Views and copies.
TensorId view(Graph& g, TensorId x, const Shape& sizes);
/// A view where strides allow it, else a copy seen with other sizes.
TensorId reshape(Graph& g, TensorId x, const Shape& sizes);
TensorId transpose(Graph& g, TensorId x, int64_t a, int64_t b);
TensorId t(Graph& g, TensorId x);
TensorId permute(Graph& g, TensorId x, const std::vector<int64_t>& order);
TensorId unsqueeze(Graph& g, TensorId x, int64_t dim);
TensorId squeeze(Graph& g, TensorId x, int64_t dim);
TensorId expand(Graph& g, TensorId x, const Shape& sizes);
TensorId slice(Graph& g, TensorId x, int64_t dim, int64_t start, int64_t end, int64_t step = 1);
TensorId select(Graph& g, TensorId x, int64_t dim, int64_t index);
std::vector<TensorId> split(Graph& g, TensorId x, int64_t size, int64_t dim);
TensorId cat(Graph& g, const std::vector<TensorId>& parts, int64_t dim);
/// With `contiguous` dense in row order, else in the order the tensor has.
TensorId clone(Graph& g, TensorId x, bool contiguous);
TensorId roll(Graph& g, TensorId x, const std::vector<int64_t>& shifts, const std::vector<int64_t>& dims);

// Reductions and products.
TensorId sum(Graph& g, TensorId x, const std::vector<int64_t>& dims, bool keep);
TensorId mean(Graph& g, TensorId x, const std::vector<int64_t>& dims, bool keep);
/// Adds up what broadcasting spread, so that sizes become `shape`; nothing to do where they are so already.
TensorId sum_to(Graph& g, TensorId x, const Shape& shape);
TensorId mm(Graph& g, TensorId a, TensorId b);
TensorId bmm(Graph& g, TensorId a, TensorId b);
TensorId addmm(Graph& g, TensorId bias, TensorId a, TensorId b);

// Tensors from nothing.
TensorId arange(Graph& g, int64_t end, bool name_dtype = false);
TensorId scalar(Graph& g, double value);
TensorId zeros(Graph& g, const Shape& shape);

// Layers.
/// A negative padding stands for none.
TensorId embedding(Graph& g, TensorId table, TensorId index, int64_t padding = -1);
TensorId layer_norm(Graph& g, TensorId x, TensorId weight, TensorId bias, double eps);
TensorId softmax(Graph& g, TensorId x, int64_t dim);
struct AttentionOptions {
  bool causal = false;
  double scale = 1;
  TensorId mask;  // added to the scores; none where it has no value
};
TensorId attention(Graph& g, TensorId query, TensorId key, TensorId value, const AttentionOptions& options);
TensorId convolution(Graph& g, TensorId x, TensorId weight, TensorId bias, int64_t stride);
/// Mean of the negative log-likelihood of `labels` [n] under `logits` [n, classes]; -100 is left out.
TensorId cross_entropy(Graph& g, TensorId logits, TensorId labels);

}  // namespace partita::model::build
