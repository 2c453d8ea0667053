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
    {.target = "aten.neg.default", .arguments = "self", .relate = linear_in_first, .result = Row::kSameDType},
    {.target = "aten.clone.default",
     .arguments = "self memory_format",
     .relate = linear_in_first,
     .cost = CostKind::kReorder,
     .result = Row::kSameDType},
    {.target = "aten.mul.Scalar", .arguments = "self other", .relate = linear_in_first},
    {.target = "aten.div.Scalar", .arguments = "self other", .relate = linear_in_first},
    {.target = "aten._to_copy.default",
     .arguments = "self dtype layout device pin_memory non_blocking memory_format",
     .relate = relate_cast},
    {.target = "aten.add.Tensor",
     .arguments = "self other alpha",
     .relate = jointly_linear<0, 1>,
     .workspace = conversion_workspace},
    {.target = "aten.sub.Tensor",
     .arguments = "self other alpha",
     .relate = jointly_linear<0, 1>,
     .workspace = conversion_workspace},
    {.target = "aten.mul.Tensor",
     .arguments = "self other",
     .relate = linear_in_each,
     .workspace = conversion_workspace},
    {.target = "aten.div.Tensor",
     .arguments = "self other",
     .relate = linear_in_first,
     .workspace = conversion_workspace},
    {.target = "aten.div.Tensor_mode", .arguments = "self other rounding_mode", .relate = relate_division},
    {.target = "aten.where.self", .arguments = "condition self other", .relate = jointly_linear<1, 2>},
    {.target = "aten.masked_fill.Scalar", .arguments = "self mask value", .relate = relate_masked_fill},
    {.target = "aten.masked_fill.Tensor", .arguments = "self mask value", .relate = jointly_linear<0, 2>},
    {.target = "aten.copy.default",
     .arguments = "self src non_blocking",
     .relate = relate_overwrite,
     .copies_storage = true},
    {.target = "aten.fill.Tensor", .arguments = "self value", .relate = relate_overwrite},
    {.target = "aten.fill.Scalar",
     .arguments = "self value",
     .relate = relate_fill,
     .result = Row::kSameDType},
    {.target = "aten.zero.default", .arguments = "self", .relate = relate_fill, .result = Row::kSameDType},
    {.target = "aten.gelu_backward.default",
     .arguments = "grad_output self approximate",
     .relate = linear_in_first,
     .workspace = gelu_backward_workspace,
     .result = Row::kSameDType},
    {.target = "aten.silu_backward.default",
     .arguments = "grad_output self",
     .relate = linear_in_first,
     .result = Row::kSameDType},
    {.target = "aten.tanh_backward.default",
     .arguments = "grad_output output",
     .relate = linear_in_first,
     .result = Row::kSameDType},
    {.target = "aten.sigmoid_backward.default",
     .arguments = "grad_output output",
     .relate = linear_in_first,
     .result = Row::kSameDType},
    {.target = "aten.threshold_backward.default",
     .arguments = "grad_output self threshold",
     .relate = linear_in_first},
    {.target = "aten.softplus_backward.default",
     .arguments = "grad_output self beta threshold",
     .relate = linear_in_first},
    {.target = "aten.hardtanh_backward.default",
     .arguments = "grad_output self min_val max_val",
     .relate = linear_in_first},
    {.target = "aten.leaky_relu_backward.default",
     .arguments = "grad_output self negative_slope self_is_result",
     .relate = linear_in_first},
    {.target = "aten.log_sigmoid_forward.default",
     .arguments = "self",
     .outputs = 2,
     .relate = relate_log_sigmoid,
     .workspace = first_copy_workspace},
    {.target = "aten.log_sigmoid_backward.default",
     .arguments = "grad_output self buffer",
     .relate = relate_log_sigmoid_backward},
    {.target = "aten.add.Scalar", .arguments = "self other alpha", .relate = relate_broadcast},
    {.target = "aten.sub.Scalar", .arguments = "self other alpha", .relate = relate_broadcast},
    {.target = "aten.rsub.Scalar", .arguments = "self other alpha", .relate = relate_broadcast},
    {.target = "aten.relu.default",
     .arguments = "self",
     .relate = relate_broadcast,
     .result = Row::kSameDType},
    {.target = "aten.gelu.default",
     .arguments = "self approximate",
     .relate = relate_broadcast,
     .result = Row::kSameDType},
    {.target = "aten.silu.default",
     .arguments = "self",
     .relate = relate_broadcast,
     .result = Row::kSameDType},
    {.target = "aten.tanh.default", .arguments = "self", .relate = relate_broadcast},
    {.target = "aten.sigmoid.default", .arguments = "self", .relate = relate_broadcast},
    {.target = "aten.softplus.default", .arguments = "self beta threshold", .relate = relate_broadcast},
    {.target = "aten.hardtanh.default", .arguments = "self min_val max_val", .relate = relate_broadcast},
    {.target = "aten.leaky_relu.default", .arguments = "self negative_slope", .relate = relate_broadcast},
    {.target = "aten.clamp.default", .arguments = "self min max", .relate = relate_broadcast},
    {.target = "aten.abs.default", .arguments = "self", .relate = relate_broadcast},
    {.target = "aten.sign.default", .arguments = "self", .relate = relate_broadcast},
    {.target = "aten.sgn.default", .arguments = "self", .relate = relate_broadcast},
    {.target = "aten.ceil.default",
     .arguments = "self",
     .relate = relate_broadcast,
     .result = Row::kSameDType},
    {.target = "aten.cos.default", .arguments = "self", .relate = relate_broadcast},
    {.target = "aten.sin.default", .arguments = "self", .relate = relate_broadcast},
    {.target = "aten.erf.default", .arguments = "self", .relate = relate_broadcast},
    {.target = "aten.exp.default", .arguments = "self", .relate = relate_broadcast},
    {.target = "aten.log.default", .arguments = "self", .relate = relate_broadcast},
    {.target = "aten.sqrt.default", .arguments = "self", .relate = relate_broadcast},
    {.target = "aten.rsqrt.default", .arguments = "self", .relate = relate_broadcast},
    {.target = "aten.reciprocal.default", .arguments = "self", .relate = relate_broadcast},
    {.target = "aten.pow.Tensor_Scalar", .arguments = "self exponent", .relate = relate_broadcast},
    {.target = "aten.pow.Tensor_Tensor", .arguments = "self exponent", .relate = relate_broadcast},
    {.target = "aten.pow.Scalar",
     .arguments = "self exponent",
     .relate = relate_broadcast,
     .workspace = number_power_workspace},
    {.target = "aten.maximum.default", .arguments = "self other", .relate = relate_broadcast},
    {.target = "aten.minimum.default", .arguments = "self other", .relate = relate_broadcast},
    {.target = "aten.eq.Scalar",
     .arguments = "self other",
     .relate = relate_broadcast,
     .result = Row::kTruth},
    {.target = "aten.ne.Scalar",
     .arguments = "self other",
     .relate = relate_broadcast,
     .result = Row::kTruth},
    {.target = "aten.lt.Scalar",
     .arguments = "self other",
     .relate = relate_broadcast,
     .result = Row::kTruth},
    {.target = "aten.gt.Scalar",
     .arguments = "self other",
     .relate = relate_broadcast,
     .result = Row::kTruth},
    {.target = "aten.ge.Scalar",
     .arguments = "self other",
     .relate = relate_broadcast,
     .result = Row::kTruth},
    {.target = "aten.le.Scalar",
     .arguments = "self other",
     .relate = relate_broadcast,
     .result = Row::kTruth},
    {.target = "aten.eq.Tensor",
     .arguments = "self other",
     .relate = relate_broadcast,
     .result = Row::kTruth},
    {.target = "aten.ne.Tensor",
     .arguments = "self other",
     .relate = relate_broadcast,
     .result = Row::kTruth},
    {.target = "aten.lt.Tensor",
     .arguments = "self other",
     .relate = relate_broadcast,
     .result = Row::kTruth},
    {.target = "aten.le.Tensor",
     .arguments = "self other",
     .relate = relate_broadcast,
     .result = Row::kTruth},
    {.target = "aten.gt.Tensor",
     .arguments = "self other",
     .relate = relate_broadcast,
     .result = Row::kTruth},
    {.target = "aten.ge.Tensor",
     .arguments = "self other",
     .relate = relate_broadcast,
     .result = Row::kTruth},
    {.target = "aten.bitwise_and.Tensor", .arguments = "self other", .relate = relate_broadcast},
    {.target = "aten.bitwise_or.Tensor", .arguments = "self other", .relate = relate_broadcast},
    {.target = "aten.bitwise_not.default", .arguments = "self", .relate = relate_broadcast},
    {.target = "aten.logical_and.default",
     .arguments = "self other",
     .relate = relate_broadcast,
     .result = Row::kTruth},
    {.target = "aten.logical_not.default",
     .arguments = "self",
     .relate = relate_broadcast,
     .result = Row::kTruth},
};

}  // namespace

std::span<const Row> elementwise_rows() { return kRows; }

}  // namespace partita::model
