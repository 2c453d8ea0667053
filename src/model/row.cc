#include "model/row.h"

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "model/axes.h"

namespace partita::model {
namespace {

using RowsByTarget = std::unordered_map<std::string_view, const Row*>;

RowsByTarget rows_by_target() {
  RowsByTarget index;
  for (std::span<const Row> table : row_tables())
    for (const Row& row : table) CHECK(index.emplace(row.target, &row).second);
  return index;
}

void freeze_all(const OpView& op, const char* why, Relation& relation) {
  relation.opaque = true;
  for (size_t k = 0; k < op.in.size(); ++k)
    for (int d = 0; d < op.in_rank(k); ++d) relation.freeze(input_dim(k, d), why);
  for (size_t k = 0; k < op.out.size(); ++k)
    for (int d = 0; d < op.out_rank(k); ++d) relation.freeze(output_dim(k, d), why);
}

// Ranks exchange and add real numbers only.
bool computes_with_complex(const OpView& op) {
  return is_complex(op.dtype) || std::any_of(op.in_dtypes.begin(), op.in_dtypes.end(), is_complex);
}

}  // namespace

int64_t Sizes::operator[](int64_t dim) const {
  if (dim < 0 || dim >= static_cast<int64_t>(size()))
    throw Mismatch(fmt::format("an operand of {} dimensions has no dimension {}", size(), dim));
  return Shape::operator[](static_cast<size_t>(dim));
}

const Sizes& Operands::operator[](int64_t operand) const {
  if (operand < 0 || operand >= static_cast<int64_t>(size()))
    throw Mismatch(fmt::format("operand {} is missing; it has {}", operand, size()));
  return std::vector<Sizes>::operator[](static_cast<size_t>(operand));
}

std::vector<std::span<const Row>> row_tables() {
  return {elementwise_rows(), activation_rows(), unary_rows(),     binary_rows(),      matmul_rows(),
          shape_rows(),       place_rows(),      diagonal_rows(),  scatter_rows(),     index_rows(),
          select_rows(),      reduce_rows(),     whole_rows(),     softmax_rows(),     norm_rows(),
          batch_norm_rows(),  attention_rows(),  embedding_rows(), convolution_rows(), pool_rows(),
          resize_rows(),      pad_rows(),        window_rows(),    shuffle_rows(),     grid_rows(),
          loss_rows(),        constant_rows()};
}

const Row* find_row(std::string_view target) {
  static const RowsByTarget kIndex = rows_by_target();
  auto found = kIndex.find(target);
  return found == kIndex.end() ? nullptr : found->second;
}

bool is_dense(const Shape& shape, const Shape& strides) {
  int64_t expected = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] != 1 && strides[d] != expected) return false;
    expected *= shape[d];
  }
  return true;
}

bool is_expanded(const Shape& shape, const Shape& strides) {
  for (size_t d = 0; d < shape.size(); ++d)
    if (shape[d] > 1 && strides[d] == 0) return true;
  return false;
}

bool is_by_place(const Shape& shape, const Shape& strides) {
  if (shape.size() != 4) return false;
  return is_dense({shape[0], shape[2], shape[3], shape[1]}, {strides[0], strides[2], strides[3], strides[1]});
}

// As is_channels_last_strides_2d has it: which of n h w c steps how far, from the inside out.
bool is_turned(const Shape& shape, const Shape& strides) {
  if (shape.size() != 4 || strides[1] == 0) return false;
  int64_t least = 0;
  for (size_t d : {1, 3, 2, 0}) {
    if (shape[d] == 0 || strides[d] < least) return false;
    if (d == 0 && least == strides[1]) return false;
    least = strides[d] * std::max<int64_t>(shape[d], 1);
  }
  return true;
}

OpView view_of(const Model& model, const Op& op) {
  OpView view{.op = &op};
  for (TensorId id : inputs_of(op)) {
    view.in.push_back(model[id].shape);
    view.in_dtypes.push_back(model[id].dtype);
    view.in_dense.push_back(is_dense(model[id].shape, model[id].strides));
    view.in_by_place.push_back(is_by_place(model[id].shape, model[id].strides));
    view.in_turned.push_back(is_turned(model[id].shape, model[id].strides));
  }
  for (TensorId id : op.outputs) {
    view.out.push_back(id ? model[id].shape : Shape{});
    view.has_out.push_back(static_cast<bool>(id));
    view.out_dense.push_back(!id || is_dense(model[id].shape, model[id].strides));
  }
  auto first =
      std::find_if(op.outputs.begin(), op.outputs.end(), [](TensorId id) { return static_cast<bool>(id); });
  if (first != op.outputs.end()) view.dtype = model[*first].dtype;
  return view;
}

namespace {

// Of a sum of no elements every part is the whole sum.
void freeze_empty_sums(const OpView& op, Relation& relation) {
  for (const DimRef& dim : relation.reduced)
    if (const Shape& shape = op.in[dim.operand]; numel(shape) == 0)
      relation.freeze(dim, "a sum of no elements is not cut");
}

}  // namespace

Relation relate(const OpView& op) {
  Relation relation;
  const Row* row = find_row(op.op->target);
  if (computes_with_complex(op)) {
    freeze_all(op, "complex numbers stay whole", relation);
  } else if (row && !row->letters.empty()) {
    relate_product(op, row->letters, row->bias, relation);
  } else if (row && row->relate) {
    row->relate(op, relation);
  } else if (!op.op->axes.empty()) {
    relate_axes(op, relation);
  } else {
    freeze_all(op, "no row for this op", relation);
  }
  freeze_empty_sums(op, relation);
  return relation;
}

Flops flops_of(const OpView& op) {
  const Row* row = find_row(op.op->target);
  return row && row->flops ? row->flops(op) : 0;
}

Bytes workspace_of(const OpView& local) {
  const Row* row = find_row(local.op->target);
  return row && row->workspace ? row->workspace(local) : 0;
}

Bytes retained_of(const OpView& local) {
  const Row* row = find_row(local.op->target);
  if (!row) return 0;
  return (row->retained ? row->retained(local) : 0) + (row->copies_storage ? local.spare : 0);
}

bool copies_storage(const Op& op) {
  const Row* row = find_row(op.target);
  return row && row->copies_storage;
}

size_t keeper_of(const Op& op) {
  const Row* row = find_row(op.target);
  return row ? row->keeper : 0;
}

bool is_view(const Op& op) {
  if (const Row* row = find_row(op.target)) return row->view;
  for (const OpaqueOnPurpose& opaque : opaque_on_purpose())
    if (opaque.target == op.target) return opaque.view;
  return op.view;
}

// Rows that are scaled by how often they occur cannot be added one by one.
AccumulationKind accumulation_of(const Op& op) {
  const Row* row = find_row(op.target);
  if (!row) return AccumulationKind::kNone;
  if (row->accumulation != AccumulationKind::kRows) return row->accumulation;
  constexpr std::string_view kScaled = "scale_grad_by_freq";
  const Arg& scaled = argument(op, argument_position(*row, kScaled), kScaled);
  return scaled.kind == Arg::kBool && scaled.integer ? AccumulationKind::kNone : row->accumulation;
}

CostKind cost_of(const Op& op) {
  const Row* row = find_row(op.target);
  return row ? row->cost : CostKind::kPlain;
}

bool is_batched_product(const Op& op) { return cost_of(op) == CostKind::kBatchedProduct; }

bool is_product(const Op& op) { return cost_of(op) == CostKind::kProduct || is_batched_product(op); }

int left_factor(const Op& op) {
  CHECK(is_product(op));
  return find_row(op.target)->bias ? 1 : 0;
}

size_t argument_position(const Row& row, std::string_view name) {
  size_t position = 0;
  for (std::string_view left = row.arguments; !left.empty(); ++position) {
    std::string_view word = left.substr(0, left.find(' '));
    if (word == name) return position;
    left.remove_prefix(std::min(word.size() + 1, left.size()));
  }
  CHECK_EQ(std::string(name), std::string(row.arguments));
  return position;
}

bool is_plain_sum(const Model& model, const Op& op) {
  if (op.target != "aten.add.Tensor" || op.args.size() != 2 || !op.kwargs.empty()) return false;
  std::vector<TensorId> ins = inputs_of(op);
  if (ins.size() != 2 || ins[0] == ins[1]) return false;
  const Tensor& out = model[op.outputs[0]];
  return std::all_of(ins.begin(), ins.end(), [&](TensorId id) {
    return model[id].shape == out.shape && model[id].dtype == out.dtype;
  });
}

Op localize(const OpView& whole, const OpView& local) {
  Op op = *whole.op;
  const Row* row = find_row(op.target);
  if (row && row->localize) row->localize(whole, local, op);
  return op;
}

}  // namespace partita::model
