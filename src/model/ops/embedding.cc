#include "model/ops/common.h"
#include "model/ops/workspace.h"

namespace partita {
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

constexpr Row kRows[] = {
    {.target = "aten.embedding.default",
     .relate = relate_embedding,
     .workspace = embedding_workspace,
     .result = Row::kSameDType},
    {.target = "aten.embedding_dense_backward.default",
     .relate = relate_embedding_backward,
     .workspace = embedding_backward_workspace,
     .accumulates = [](const Op& op) { return !bool_argument(op, 4, "scale_grad_by_freq", false); },
     .result = Row::kSameDType},
};

}  // namespace

std::span<const Row> embedding_rows() { return kRows; }

}  // namespace partita
