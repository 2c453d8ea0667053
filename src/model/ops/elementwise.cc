#include "model/ops/elementwise.h"

#include "model/ops/workspace.h"

namespace partita::model {

void linear_in_first(const OpView& op, Relation& relation) {
  relate_broadcast(op, relation);
  // 2 / x has its only tensor in the second place.
  if (!op.op->args.empty() && op.op->args[0].kind == Arg::kTensor) relation.linear.push_back({0});
}

namespace {

void linear_in_each(const OpView& op, Relation& relation) {
  relate_broadcast(op, relation);
  for (size_t k = 0; k < op.in.size(); ++k) relation.linear.push_back({static_cast<int>(k)});
}

// Rounding to whole numbers or to a truth value is not linear.
void relate_cast(const OpView& op, Relation& relation) {
  relate_broadcast(op, relation);
  bool rounds = is_floating_input(op, 0) && !is_floating(op.dtype);
  if (!rounds && op.dtype != DType::kBool) relation.linear.push_back({0});
}

void relate_division(const OpView& op, Relation& relation) {
  bool rounds = argument(*op.op, 2, "rounding_mode").kind == Arg::kText;
  rounds ? relate_broadcast(op, relation) : linear_in_first(op, relation);
}

// Filling with zeros is linear, with anything else affine.
void relate_masked_fill(const OpView& op, Relation& relation) {
  relate_broadcast(op, relation);
  if (number_argument(*op.op, 2, "value", 1) == 0) relation.linear.push_back({0});
}

// Filling with a number reads only the shape; with zeros it is linear.
void relate_fill(const OpView& op, Relation& relation) {
  relate_broadcast(op, relation);
  if (number_argument(*op.op, 1, "value", 0) == 0) relation.linear.push_back({0});
}

// copy and fill take only the shape of their first operand.
void relate_overwrite(const OpView& op, Relation& relation) {
  relate_broadcast(op, relation);
  if (is_floating_input(op, 1) == is_floating(op.dtype)) relation.linear.push_back({1});
}

// (x) -> y, buffer. The buffer is x's size where the kernel uses one, else empty.
void relate_log_sigmoid(const OpView& op, Relation& relation) {
  relate_alike(op, 0, 0, relation);
  if (op.out[1] == op.in[0]) relate_alike(op, 0, 1, relation);
}

void relate_log_sigmoid_backward(const OpView& op, Relation& relation) {
  relate_alike(op, 0, 0, relation);
  relate_alike(op, 1, 0, relation);
  if (op.in[2] == op.in[0]) relate_alike(op, 2, 0, relation);
  relation.linear = {{0}};
}

constexpr Row kRows[] = {
    {.target = "aten.neg.default", .relate = linear_in_first, .result = Row::kSameDType},
    {.target = "aten.clone.default", .relate = linear_in_first, .result = Row::kSameDType},
    {.target = "aten.mul.Scalar", .relate = linear_in_first},
    {.target = "aten.div.Scalar", .relate = linear_in_first},
    {.target = "aten._to_copy.default", .relate = relate_cast},
    {.target = "aten.add.Tensor", .relate = jointly_linear<0, 1>, .workspace = conversion_workspace},
    {.target = "aten.sub.Tensor", .relate = jointly_linear<0, 1>, .workspace = conversion_workspace},
    {.target = "aten.mul.Tensor", .relate = linear_in_each, .workspace = conversion_workspace},
    {.target = "aten.div.Tensor", .relate = linear_in_first, .workspace = conversion_workspace},
    {.target = "aten.div.Tensor_mode", .relate = relate_division},
    {.target = "aten.where.self", .relate = jointly_linear<1, 2>},
    {.target = "aten.masked_fill.Scalar", .relate = relate_masked_fill},
    {.target = "aten.masked_fill.Tensor", .relate = jointly_linear<0, 2>},
    {.target = "aten.copy.default", .relate = relate_overwrite, .copies_storage = true},
    {.target = "aten.fill.Tensor", .relate = relate_overwrite},
    {.target = "aten.fill.Scalar", .relate = relate_fill, .result = Row::kSameDType},
    {.target = "aten.zero.default", .relate = relate_fill, .result = Row::kSameDType},
    {.target = "aten.gelu_backward.default",
     .relate = linear_in_first,
     .workspace = gelu_backward_workspace,
     .result = Row::kSameDType},
    {.target = "aten.silu_backward.default", .relate = linear_in_first, .result = Row::kSameDType},
    {.target = "aten.tanh_backward.default", .relate = linear_in_first, .result = Row::kSameDType},
    {.target = "aten.sigmoid_backward.default", .relate = linear_in_first, .result = Row::kSameDType},
    {.target = "aten.threshold_backward.default", .relate = linear_in_first},
    {.target = "aten.softplus_backward.default", .relate = linear_in_first},
    {.target = "aten.hardtanh_backward.default", .relate = linear_in_first},
    {.target = "aten.leaky_relu_backward.default", .relate = linear_in_first},
    {.target = "aten.log_sigmoid_forward.default",
     .relate = relate_log_sigmoid,
     .workspace = first_copy_workspace},
    {.target = "aten.log_sigmoid_backward.default", .relate = relate_log_sigmoid_backward},
    {.target = "aten.add.Scalar", .relate = relate_broadcast},
    {.target = "aten.sub.Scalar", .relate = relate_broadcast},
    {.target = "aten.rsub.Scalar", .relate = relate_broadcast},
    {.target = "aten.relu.default", .relate = relate_broadcast, .result = Row::kSameDType},
    {.target = "aten.gelu.default", .relate = relate_broadcast, .result = Row::kSameDType},
    {.target = "aten.silu.default", .relate = relate_broadcast, .result = Row::kSameDType},
    {.target = "aten.tanh.default", .relate = relate_broadcast},
    {.target = "aten.sigmoid.default", .relate = relate_broadcast},
    {.target = "aten.softplus.default", .relate = relate_broadcast},
    {.target = "aten.hardtanh.default", .relate = relate_broadcast},
    {.target = "aten.leaky_relu.default", .relate = relate_broadcast},
    {.target = "aten.clamp.default", .relate = relate_broadcast},
    {.target = "aten.abs.default", .relate = relate_broadcast},
    {.target = "aten.sign.default", .relate = relate_broadcast},
    {.target = "aten.sgn.default", .relate = relate_broadcast},
    {.target = "aten.ceil.default", .relate = relate_broadcast, .result = Row::kSameDType},
    {.target = "aten.cos.default", .relate = relate_broadcast},
    {.target = "aten.sin.default", .relate = relate_broadcast},
    {.target = "aten.erf.default", .relate = relate_broadcast},
    {.target = "aten.exp.default", .relate = relate_broadcast},
    {.target = "aten.log.default", .relate = relate_broadcast},
    {.target = "aten.sqrt.default", .relate = relate_broadcast},
    {.target = "aten.rsqrt.default", .relate = relate_broadcast},
    {.target = "aten.reciprocal.default", .relate = relate_broadcast},
    {.target = "aten.pow.Tensor_Scalar", .relate = relate_broadcast},
    {.target = "aten.pow.Tensor_Tensor", .relate = relate_broadcast},
    {.target = "aten.pow.Scalar", .relate = relate_broadcast, .workspace = number_power_workspace},
    {.target = "aten.maximum.default", .relate = relate_broadcast},
    {.target = "aten.minimum.default", .relate = relate_broadcast},
    {.target = "aten.eq.Scalar", .relate = relate_broadcast, .result = Row::kTruth},
    {.target = "aten.ne.Scalar", .relate = relate_broadcast, .result = Row::kTruth},
    {.target = "aten.lt.Scalar", .relate = relate_broadcast, .result = Row::kTruth},
    {.target = "aten.gt.Scalar", .relate = relate_broadcast, .result = Row::kTruth},
    {.target = "aten.ge.Scalar", .relate = relate_broadcast, .result = Row::kTruth},
    {.target = "aten.le.Scalar", .relate = relate_broadcast, .result = Row::kTruth},
    {.target = "aten.eq.Tensor", .relate = relate_broadcast, .result = Row::kTruth},
    {.target = "aten.ne.Tensor", .relate = relate_broadcast, .result = Row::kTruth},
    {.target = "aten.lt.Tensor", .relate = relate_broadcast, .result = Row::kTruth},
    {.target = "aten.le.Tensor", .relate = relate_broadcast, .result = Row::kTruth},
    {.target = "aten.gt.Tensor", .relate = relate_broadcast, .result = Row::kTruth},
    {.target = "aten.ge.Tensor", .relate = relate_broadcast, .result = Row::kTruth},
    {.target = "aten.bitwise_and.Tensor", .relate = relate_broadcast},
    {.target = "aten.bitwise_or.Tensor", .relate = relate_broadcast},
    {.target = "aten.bitwise_not.default", .relate = relate_broadcast},
    {.target = "aten.logical_and.default", .relate = relate_broadcast, .result = Row::kTruth},
    {.target = "aten.logical_not.default", .relate = relate_broadcast, .result = Row::kTruth},
};

}  // namespace

std::span<const Row> elementwise_rows() { return kRows; }

}  // namespace partita::model
