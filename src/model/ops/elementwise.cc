#include <algorithm>
#include <array>

#include "model/ops/common.h"

namespace partita {
namespace {

// A number in a tensor's place makes add, sub and where affine, not linear: x + 1 summed over n ranks adds n.
template <int... Operands>
void jointly_linear(const OpView& op, Relation& relation) {
  relate_broadcast(op, relation);
  constexpr std::array<int, sizeof...(Operands)> kSet{Operands...};
  if (op.in.size() > static_cast<size_t>(*std::max_element(kSet.begin(), kSet.end())))
    relation.linear.push_back({Operands...});
}

void linear_in_each(const OpView& op, Relation& relation) {
  relate_broadcast(op, relation);
  for (size_t k = 0; k < op.in.size(); ++k) relation.linear.push_back({static_cast<int>(k)});
}

void linear_in_first(const OpView& op, Relation& relation) {
  relate_broadcast(op, relation);
  // 2 / x has its only tensor in the second place.
  if (!op.op->args.empty() && op.op->args[0].kind == Arg::kTensor) relation.linear.push_back({0});
}

constexpr Row kRows[] = {
    {.target = "aten.neg.default", .relate = linear_in_first},
    {.target = "aten._to_copy.default", .relate = linear_in_first},
    {.target = "aten.clone.default", .relate = linear_in_first},
    {.target = "aten.mul.Scalar", .relate = linear_in_first},
    {.target = "aten.div.Scalar", .relate = linear_in_first},
    {.target = "aten.add.Tensor", .relate = jointly_linear<0, 1>},
    {.target = "aten.sub.Tensor", .relate = jointly_linear<0, 1>},
    {.target = "aten.mul.Tensor", .relate = linear_in_each},
    {.target = "aten.div.Tensor", .relate = linear_in_first},
    {.target = "aten.where.self", .relate = jointly_linear<1, 2>},
    {.target = "aten.gelu_backward.default", .relate = linear_in_first},
    {.target = "aten.silu_backward.default", .relate = linear_in_first},
    {.target = "aten.tanh_backward.default", .relate = linear_in_first},
    {.target = "aten.sigmoid_backward.default", .relate = linear_in_first},
    {.target = "aten.threshold_backward.default", .relate = linear_in_first},
    {.target = "aten.add.Scalar", .relate = relate_broadcast},
    {.target = "aten.sub.Scalar", .relate = relate_broadcast},
    {.target = "aten.rsub.Scalar", .relate = relate_broadcast},
    {.target = "aten.relu.default", .relate = relate_broadcast},
    {.target = "aten.gelu.default", .relate = relate_broadcast},
    {.target = "aten.silu.default", .relate = relate_broadcast},
    {.target = "aten.tanh.default", .relate = relate_broadcast},
    {.target = "aten.sigmoid.default", .relate = relate_broadcast},
    {.target = "aten.cos.default", .relate = relate_broadcast},
    {.target = "aten.sin.default", .relate = relate_broadcast},
    {.target = "aten.exp.default", .relate = relate_broadcast},
    {.target = "aten.log.default", .relate = relate_broadcast},
    {.target = "aten.sqrt.default", .relate = relate_broadcast},
    {.target = "aten.rsqrt.default", .relate = relate_broadcast},
    {.target = "aten.reciprocal.default", .relate = relate_broadcast},
    {.target = "aten.pow.Tensor_Scalar", .relate = relate_broadcast},
    {.target = "aten.eq.Scalar", .relate = relate_broadcast},
    {.target = "aten.ne.Scalar", .relate = relate_broadcast},
    {.target = "aten.lt.Scalar", .relate = relate_broadcast},
    {.target = "aten.gt.Scalar", .relate = relate_broadcast},
    {.target = "aten.ge.Scalar", .relate = relate_broadcast},
    {.target = "aten.le.Scalar", .relate = relate_broadcast},
    {.target = "aten.eq.Tensor", .relate = relate_broadcast},
    {.target = "aten.lt.Tensor", .relate = relate_broadcast},
    {.target = "aten.le.Tensor", .relate = relate_broadcast},
    {.target = "aten.gt.Tensor", .relate = relate_broadcast},
    {.target = "aten.ge.Tensor", .relate = relate_broadcast},
    {.target = "aten.bitwise_and.Tensor", .relate = relate_broadcast},
    {.target = "aten.bitwise_or.Tensor", .relate = relate_broadcast},
    {.target = "aten.bitwise_not.default", .relate = relate_broadcast},
    {.target = "aten.logical_and.default", .relate = relate_broadcast},
    {.target = "aten.logical_not.default", .relate = relate_broadcast},
    {.target = "aten.masked_fill.Scalar", .relate = relate_broadcast},
};

}  // namespace

std::span<const Row> elementwise_rows() { return kRows; }

}  // namespace partita
