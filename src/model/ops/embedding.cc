#include "model/ops/common.h"
#include "model/ops/planes.h"
#include "model/ops/workspace.h"

namespace partita::model {
namespace {

// embedding(table, index): "v h, idx -> idx h". A rank that holds part of the table could not look up the
// others' rows.
void relate_embedding(const OpView& op, Relation& r) {
  int64_t rank = op.in_rank(1);
  for (int64_t d = 0; d < rank; ++d) r.same(input_dim(1, d), output_dim(0, d));
  r.same(input_dim(0, 1), output_dim(0, rank));
  r.freeze(input_dim(0, 0), "a lookup needs the whole table");
  r.linear = {{0}};
}

// embedding_dense_backward(grad, index, rows, padding, scale): "idx h, idx -> v h"; splitting idx leaves a
// Partial.
void relate_embedding_backward(const OpView& op, Relation& r) {
  int64_t rank = op.in_rank(1);
  bool counts = bool_argument(*op.op, 4, "scale_grad_by_freq", false);
  for (int64_t d = 0; d < rank; ++d) {
    r.same(input_dim(0, d), input_dim(1, d));
    if (counts)
      r.freeze(input_dim(0, d), "gradients are divided by how often a row occurs");
    else
      r.reduced.push_back(input_dim(0, d));
  }
  r.same(input_dim(0, rank), output_dim(0, 1));
  r.freeze(output_dim(0, 0), "a gradient lands in any row");
  r.linear = {{0}};
}

void freeze_all_but_width(const OpView& op, Relation& r) {
  auto freeze = [&](const Operands& operands, DimOf dim) {
    for (size_t k = 0; k < operands.size(); ++k)
      for (int64_t d = 0; d < static_cast<int64_t>(operands[static_cast<int64_t>(k)].size()); ++d)
        if (d != 1) r.freeze(dim(static_cast<int>(k), d), "bags take rows from anywhere in the table");
  };
  freeze(op.in, input_dim);
  freeze(op.out, output_dim);
}

// _embedding_bag(table, indices, offsets, ...): "v h, n, b -> b h, n, b, b"; at a maximum the last is "b h",
// the row that gave it.
void relate_embedding_bag(const OpView& op, Relation& r) {
  r.same(input_dim(0, 1), output_dim(0, 1));
  bool largest = op.out_rank(3) == 2;
  if (largest) r.same(output_dim(0, 1), output_dim(3, 1));
  freeze_all_but_width(op, r);
  r.reads = {{1, {1, 2}}, {2, {1, 2}}};
  if (!largest) r.reads[3] = {1, 2};
}

// _embedding_bag_backward(grad, indices, offsets, bags, sizes, maxima, ...): "b h, n, b, n, b, b -> v h"
void relate_embedding_bag_backward(const OpView& op, Relation& r) {
  r.same(input_dim(0, 1), output_dim(0, 1));
  if (op.in_rank(5) == 2) r.same(input_dim(5, 1), output_dim(0, 1));
  freeze_all_but_width(op, r);
  r.linear = {{0}};
}

constexpr Row kRows[] = {
    {.target = "aten.embedding.default",
     .arguments = "weight indices padding_idx scale_grad_by_freq sparse",
     .relate = relate_embedding,
     .workspace = embedding_workspace,
     .sliced = Sliced::kPieces,
     .result = Row::kSameDType},
    {.target = "aten.embedding_dense_backward.default",
     .arguments = "grad_output indices num_weights padding_idx scale_grad_by_freq",
     .relate = relate_embedding_backward,
     .workspace = embedding_backward_workspace,
     .accumulation = AccumulationKind::kRows,
     .result = Row::kSameDType},
    {.target = "aten._embedding_bag.default",
     .arguments = "weight indices offsets scale_grad_by_freq mode sparse per_sample_weights "
                  "include_last_offset padding_idx",
     .outputs = 4,
     .relate = relate_embedding_bag,
     .workspace = embedding_bag_workspace,
     .retained = embedding_bag_retained,
     .keeper = 1,
     .result = Row::kSameDType},
    {.target = "aten._embedding_bag_backward.default",
     .arguments = "grad indices offsets offset2bag bag_size maximum_indices num_weights scale_grad_by_freq "
                  "mode sparse per_sample_weights padding_idx",
     .relate = relate_embedding_bag_backward,
     .workspace = embedding_bag_backward_workspace,
     .result = Row::kSameDType},
};

}  // namespace

std::span<const Row> embedding_rows() { return kRows; }

}  // namespace partita::model
