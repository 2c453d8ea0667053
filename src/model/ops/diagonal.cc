// Diagonals taken, written and made.
#include "model/ops/planes.h"

namespace partita::model {
namespace {

constexpr const char* kDiagonal = "the diagonal counts rows and columns";

// A matrix dimension each at `dim1` and `dim2` of `matrix`; `line` has all others, then the diagonal.
void relate_line(const OpView& op, size_t dims, int64_t rank, DimOf matrix, int m, DimOf line, int l,
                 int64_t fallback, Relation& r) {
  int64_t a = wrap_dim(int_argument(*op.op, dims, "dim1", fallback), rank);
  int64_t b = wrap_dim(int_argument(*op.op, dims + 1, "dim2", fallback + 1), rank);
  int64_t at = 0;
  for (int64_t d = 0; d < rank; ++d) {
    if (d == a || d == b)
      r.freeze(matrix(m, d), kDiagonal);
    else
      r.same(matrix(m, d), line(l, at++));
  }
  r.freeze(line(l, at), kDiagonal);
  r.linear = {{0}};
}

// diagonal(x, offset, dim1, dim2)
void relate_diagonal(const OpView& op, Relation& r) {
  relate_line(op, 2, op.in_rank(0), input_dim, 0, output_dim, 0, 0, r);
}

// diagonal_backward(grad, input_sizes, offset, dim1, dim2)
void relate_diagonal_backward(const OpView& op, Relation& r) {
  need_sizes(*op.op, 1, "input_sizes", op.out[0]);
  relate_line(op, 3, op.out_rank(0), output_dim, 0, input_dim, 0, 0, r);
}

void localize_diagonal_backward(const OpView&, const OpView& local, Op& op) {
  set_argument(op, 1, "input_sizes", Arg::list(local.out[0]));
}

// diagonal_scatter(x, source, offset, dim1, dim2)
void relate_diagonal_scatter(const OpView& op, Relation& r) {
  relate_line(op, 3, op.in_rank(0), input_dim, 0, input_dim, 1, 0, r);
  relate_alike(op, 0, 0, r);
  r.linear = {{0, 1}};
}

// diag_embed(x, offset, dim1, dim2)
void relate_diag_embed(const OpView& op, Relation& r) {
  relate_line(op, 2, op.out_rank(0), output_dim, 0, input_dim, 0, -2, r);
}

// trace(x)
void relate_trace(const OpView&, Relation& r) {
  for (int64_t d : {0, 1}) r.freeze(input_dim(0, d), kDiagonal);
  r.linear = {{0}};
}

constexpr Row kRows[] = {
    {.target = "aten.diagonal.default",
     .arguments = "self offset dim1 dim2",
     .relate = relate_diagonal,
     .view = true},
    {.target = "aten.diagonal_backward.default",
     .arguments = "grad_output input_sizes offset dim1 dim2",
     .relate = relate_diagonal_backward,
     .localize = localize_diagonal_backward},
    {.target = "aten.diagonal_scatter.default",
     .arguments = "self src offset dim1 dim2",
     .relate = relate_diagonal_scatter,
     .copies_storage = true},
    {.target = "aten.diag_embed.default", .arguments = "self offset dim1 dim2", .relate = relate_diag_embed},
    {.target = "aten.trace.default", .arguments = "self", .relate = relate_trace},
};

}  // namespace

std::span<const Row> diagonal_rows() { return kRows; }

}  // namespace partita::model
