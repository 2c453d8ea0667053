#include "model/ops/common.h"

namespace partita::model {
namespace {

// linalg_cross(x, y, dim): products of the others of three numbers.
void relate_cross(const OpView& op, Relation& r) {
  relate_broadcast(op, r);
  int64_t dim = wrap_dim(int_argument(*op.op, 2, "dim", -1), op.out_rank(0));
  r.freeze(output_dim(0, dim), "each number is made of the two others");
  r.linear = {{0}, {1}};
}

Flops product_flops(const OpView& op) {
  Flops inner = static_cast<Flops>(op.in[left_factor(*op.op)].back());
  return 2.0 * static_cast<Flops>(numel(op.out[0])) * inner;
}

constexpr Row kRows[] = {
    {.target = "aten.mm.default",
     .arguments = "self mat2",
     .letters = "m k, k n -> m n",
     .flops = product_flops,
     .accumulation = AccumulationKind::kProduct,
     .cost = CostKind::kProduct,
     .sliced = Sliced::kSums,
     .result = Row::kSameDType},
    {.target = "aten.bmm.default",
     .arguments = "self mat2",
     .letters = "b m k, b k n -> b m n",
     .flops = product_flops,
     .accumulation = AccumulationKind::kProduct,
     .cost = CostKind::kBatchedProduct,
     .sliced = Sliced::kSums,
     .result = Row::kSameDType},
    {.target = "aten.addmm.default",
     .arguments = "self mat1 mat2 beta alpha",
     .letters = "m k, k n -> m n",
     .bias = true,
     .flops = product_flops,
     .cost = CostKind::kProduct,
     .sliced = Sliced::kSums,
     .result = Row::kSameDType},
    {.target = "aten.baddbmm.default",
     .arguments = "self batch1 batch2 beta alpha",
     .letters = "b m k, b k n -> b m n",
     .bias = true,
     .flops = product_flops,
     .cost = CostKind::kBatchedProduct,
     .result = Row::kSameDType},
    {.target = "aten.mv.default",
     .arguments = "self vec",
     .letters = "m k, k -> m",
     .result = Row::kSameDType},
    {.target = "aten.addmv.default",
     .arguments = "self mat vec beta alpha",
     .letters = "m k, k -> m",
     .bias = true,
     .result = Row::kSameDType},
    {.target = "aten.dot.default",
     .arguments = "self tensor",
     .letters = "k, k ->",
     .result = Row::kSameDType},
    {.target = "aten.addbmm.default",
     .arguments = "self batch1 batch2 beta alpha",
     .letters = "b m k, b k n -> m n",
     .bias = true,
     .result = Row::kSameDType},
    {.target = "aten.linalg_cross.default",
     .arguments = "self other dim",
     .relate = relate_cross,
     .result = Row::kSameDType},
};

}  // namespace

std::span<const Row> matmul_rows() { return kRows; }

}  // namespace partita::model
