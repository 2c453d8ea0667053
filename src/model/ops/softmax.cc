#include "model/ops/common.h"
#include "model/ops/workspace.h"

namespace partita::model {
namespace {

// Softmax over one dimension: every other dimension is free.
void relate_softmax_over(const OpView& op, size_t dim_position, Relation& r) {
  relate_broadcast(op, r);
  int64_t dim = wrap_dim(int_argument(*op.op, dim_position, "dim", -1), op.out_rank(0));
  if (op.out_rank(0) > 0) r.freeze(output_dim(0, dim), "softmax needs the whole dimension");
}

void relate_softmax(const OpView& op, Relation& r) { relate_softmax_over(op, 1, r); }
void relate_softmax_backward(const OpView& op, Relation& r) {
  relate_softmax_over(op, 2, r);
  r.linear = {{0}};
}

constexpr Row kRows[] = {
    {.target = "aten._softmax.default",
     .arguments = "self dim half_to_float",
     .relate = relate_softmax,
     .workspace = first_copy_workspace},
    {.target = "aten._log_softmax.default",
     .arguments = "self dim half_to_float",
     .relate = relate_softmax,
     .workspace = first_copy_workspace,
     .cost = CostKind::kCrossEntropy},
    {.target = "aten._safe_softmax.default",
     .arguments = "self dim dtype",
     .relate = relate_softmax,
     .workspace = safe_softmax_workspace},
    {.target = "aten._softmax_backward_data.default",
     .arguments = "grad_output output dim input_dtype",
     .relate = relate_softmax_backward,
     .workspace = two_copies_workspace},
    {.target = "aten._log_softmax_backward_data.default",
     .arguments = "grad_output output dim input_dtype",
     .relate = relate_softmax_backward,
     .workspace = two_copies_workspace,
     .cost = CostKind::kCrossEntropy},
};

}  // namespace

std::span<const Row> softmax_rows() { return kRows; }

}  // namespace partita::model
