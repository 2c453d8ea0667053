#include "model/build/strides.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace partita::model::build {
namespace {

// Gapless and without overlap: sorted by stride, each dimension starts where the smaller ones end.
bool is_dense(const Dims& dims) {
  std::vector<size_t> order(dims.shape.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return dims.strides[a] < dims.strides[b]; });
  int64_t expected = 1;
  for (size_t d : order) {
    if (dims.shape[d] == 1) continue;
    if (dims.strides[d] != expected) return false;
    expected *= dims.shape[d];
  }
  return true;
}

Shape broadcast_shape(const std::vector<Dims>& operands) {
  size_t rank = 0;
  for (const Dims& dims : operands) rank = std::max(rank, dims.shape.size());
  Shape shape(rank, 1);
  for (const Dims& dims : operands) {
    size_t offset = rank - dims.shape.size();
    for (size_t d = 0; d < dims.shape.size(); ++d) {
      int64_t& size = shape[d + offset];
      if (size == 1) size = dims.shape[d];
      CHECK(dims.shape[d] == 1 || dims.shape[d] == size);
    }
  }
  return shape;
}

Shape broadcast_strides(const Dims& dims, const Shape& shape) {
  size_t offset = shape.size() - dims.shape.size();
  Shape strides(shape.size(), 0);
  for (size_t d = 0; d < dims.shape.size(); ++d)
    if (dims.shape[d] == shape[d + offset]) strides[d + offset] = dims.strides[d];
  return strides;
}

// TensorIterator's comparison: the first operand with an opinion on two dimensions decides.
int compare(const std::vector<Shape>& strides, const Shape& shape, size_t a, size_t b) {
  for (const Shape& s : strides) {
    if (s[a] == 0 || s[b] == 0) continue;
    if (s[a] != s[b]) return s[a] < s[b] ? -1 : 1;
    if (shape[a] > shape[b]) return 1;
  }
  return 0;
}

// TensorIterator's insertion sort, innermost dimension first. It is not a plain sort: an undecided pair
// neither swaps nor ends the walk.
std::vector<size_t> innermost_first(const std::vector<Shape>& strides, const Shape& shape) {
  std::vector<size_t> order(shape.size());
  for (size_t d = 0; d < order.size(); ++d) order[d] = order.size() - 1 - d;
  for (size_t i = 1; i < order.size(); ++i) {
    size_t moving = i;
    for (size_t d = i; d-- > 0;) {
      int sign = compare(strides, shape, order[d], order[moving]);
      if (sign < 0) break;
      if (sign > 0) std::swap(order[d], order[moving]), moving = d;
    }
  }
  return order;
}

Shape dense_in(const std::vector<size_t>& innermost, const Shape& shape) {
  Shape strides(shape.size());
  int64_t stride = 1;
  for (size_t d : innermost) {
    strides[d] = stride;
    stride *= std::max<int64_t>(shape[d], 1);
  }
  return strides;
}

}  // namespace

Shape contiguous_strides(const Shape& shape) {
  Shape strides(shape.size());
  int64_t stride = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= std::max<int64_t>(shape[d], 1);
  }
  return strides;
}

bool is_contiguous(const Dims& dims) {
  int64_t expected = 1;
  for (size_t d = dims.shape.size(); d-- > 0;) {
    if (dims.shape[d] == 1) continue;
    if (dims.strides[d] != expected) return false;
    expected *= dims.shape[d];
  }
  return true;
}

Dims elementwise(const std::vector<Dims>& operands) {
  Shape shape = broadcast_shape(operands);
  auto same = [&](const Dims& dims) { return dims.shape == shape; };
  if (std::all_of(operands.begin(), operands.end(), same)) {
    if (std::all_of(operands.begin(), operands.end(), is_contiguous))
      return {shape, contiguous_strides(shape)};
    auto alike = [&](const Dims& dims) { return dims.strides == operands[0].strides; };
    if (is_dense(operands[0]) && std::all_of(operands.begin(), operands.end(), alike)) return operands[0];
  }
  std::vector<Shape> strides;
  for (const Dims& dims : operands) strides.push_back(broadcast_strides(dims, shape));
  return {shape, dense_in(innermost_first(strides, shape), shape)};
}

Dims like(const Dims& operand) {
  if (is_dense(operand)) return operand;
  return {operand.shape, dense_in(innermost_first({operand.strides}, operand.shape), operand.shape)};
}

Dims permuted(const Shape& shape, const std::vector<int>& order) {
  return {shape, dense_in({order.rbegin(), order.rend()}, shape)};
}

// PyTorch's computeStride: cut the old dimensions into runs that lie behind one another, and fill each run
// with new dimensions, innermost first.
std::optional<Shape> view_strides(const Dims& dims, const Shape& shape) {
  if (dims.shape.empty() || numel(dims.shape) == 0) return contiguous_strides(shape);
  Shape strides(shape.size(), 1);
  int at = static_cast<int>(shape.size()) - 1;
  int64_t base = dims.strides.back(), run = 1, filled = 1;
  for (int d = static_cast<int>(dims.shape.size()) - 1; d >= 0; --d) {
    run *= dims.shape[d];
    if (d > 0 && (dims.shape[d - 1] == 1 || dims.strides[d - 1] == run * base)) continue;
    while (at >= 0 && (filled < run || shape[at] == 1)) {
      strides[at] = filled * base;
      filled *= shape[at--];
    }
    if (filled != run) return std::nullopt;
    if (d > 0) base = dims.strides[d - 1], run = 1, filled = 1;
  }
  return at < 0 ? std::optional(strides) : std::nullopt;
}

Shape resolved(Shape sizes, int64_t elements) {
  int64_t known = 1;
  for (int64_t size : sizes) known *= size < 0 ? 1 : size;
  for (int64_t& size : sizes)
    if (size < 0) size = elements / known;
  CHECK_EQ(numel(sizes), elements);
  return sizes;
}

}  // namespace partita::model::build
