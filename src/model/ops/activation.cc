// Activations of one tensor, and the gradients of those that have an op for it.
#include "model/ops/elementwise.h"
#include "model/ops/workspace.h"

namespace partita::model {
namespace {

// _prelu_kernel_backward(grad, x, weight) -> gx, gw; an op of its own sums the gradient of the weight.
void relate_prelu_backward(const OpView& op, Relation& r) {
  linear_in_first(op, r);
  for (int64_t d = 0; d < op.out_rank(0); ++d) r.same(output_dim(0, d), output_dim(1, d));
}

// One dimension of x is (values and gates, places); `half` has the places.
void relate_halves(const OpView& op, int x, DimRef (*half)(int, int64_t), int k, int64_t dim, Relation& r) {
  for (int64_t d = 0; d < op.in_rank(x); ++d) {
    if (d == dim)
      r.equal.push_back({{input_dim(x, d)}, {factor(0, 2), half(k, d)}});
    else
      r.same(input_dim(x, d), half(k, d));
  }
  r.freeze(factor(0, 2), "a half of values and one of gates");
}

// glu(x, dim)
void relate_glu(const OpView& op, Relation& r) {
  relate_halves(op, 0, output_dim, 0, wrap_dim(int_argument(*op.op, 1, "dim", -1), op.in_rank(0)), r);
}

// glu_backward(grad, x, dim)
void relate_glu_backward(const OpView& op, Relation& r) {
  relate_halves(op, 1, input_dim, 0, wrap_dim(int_argument(*op.op, 2, "dim", -1), op.in_rank(1)), r);
  relate_alike(op, 1, 0, r);
  r.linear = {{0}};
}

constexpr Row kRows[] = {
    {.target = "aten.elu.default", .arguments = "self alpha scale input_scale", .relate = relate_broadcast},
    {.target = "aten.elu_backward.default",
     .arguments = "grad_output alpha scale input_scale is_result self_or_result",
     .relate = linear_in_first},
    {.target = "aten.celu.default", .arguments = "self alpha", .relate = relate_broadcast},
    {.target = "aten.hardswish.default", .arguments = "self", .relate = relate_broadcast},
    {.target = "aten.hardswish_backward.default", .arguments = "grad_output self", .relate = linear_in_first},
    {.target = "aten.hardsigmoid.default", .arguments = "self", .relate = relate_broadcast},
    {.target = "aten.hardsigmoid_backward.default",
     .arguments = "grad_output self",
     .relate = linear_in_first},
    {.target = "aten.hardshrink.default", .arguments = "self lambd", .relate = relate_broadcast},
    {.target = "aten.hardshrink_backward.default",
     .arguments = "grad_out self lambd",
     .relate = linear_in_first},
    {.target = "aten.softshrink.default", .arguments = "self lambd", .relate = relate_broadcast},
    {.target = "aten.softshrink_backward.default",
     .arguments = "grad_output self lambd",
     .relate = linear_in_first},
    {.target = "aten.mish.default", .arguments = "self", .relate = relate_broadcast},
    {.target = "aten.mish_backward.default", .arguments = "grad_output self", .relate = linear_in_first},
    {.target = "aten.logit.default", .arguments = "self eps", .relate = relate_broadcast},
    {.target = "aten.logit_backward.default", .arguments = "grad_output self eps", .relate = linear_in_first},
    {.target = "aten.threshold.default", .arguments = "self threshold value", .relate = relate_broadcast},
    {.target = "aten._prelu_kernel.default", .arguments = "self weight", .relate = relate_broadcast},
    {.target = "aten._prelu_kernel_backward.default",
     .arguments = "grad_output self weight",
     .outputs = 2,
     .relate = relate_prelu_backward},
    {.target = "aten.glu.default", .arguments = "self dim", .relate = relate_glu},
    {.target = "aten.glu_backward.default",
     .arguments = "grad_output self dim",
     .relate = relate_glu_backward},
};

}  // namespace

std::span<const Row> activation_rows() { return kRows; }

}  // namespace partita::model
