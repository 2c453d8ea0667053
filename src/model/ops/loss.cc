#include "model/ops/common.h"
#include "model/ops/workspace.h"

namespace partita::model {
namespace {

constexpr int64_t kNone = 0, kMean = 1;

int64_t reduction_of(const OpView& op, size_t position) {
  return int_argument(*op.op, position, "reduction", kMean);
}

// Classes are dimension 1 of (n c ...); the labels are (n ...). A mean cannot be split over rows: the
// decomposition (decompose.h) turns it into a sum and a count first.
void relate_labels(const OpView& op, int x, Relation& r) {
  for (int64_t d = 0; d < op.in_rank(x); ++d) {
    if (d == 1)
      r.freeze(input_dim(x, d), "the label picks one class of all");
    else
      r.same(input_dim(x, d), input_dim(x + 1, d - (d > 1)));
  }
}

void relate_class_weights(const OpView& op, int x, int weight, Relation& r) {
  if (weight >= 0) r.same(input_dim(weight, 0), input_dim(x, 1));
  if (op.in_rank(x) == 1) r.freeze(input_dim(x, 0), "the label picks one class of all");
}

// nll_loss_forward(x, target, weight, reduction, ignore) -> loss, total weight
void relate_nll(const OpView& op, Relation& r) {
  need(reduction_of(op, 3) == kNone || op.out_rank(0) == 0, "the loss has {} dimensions, it is one number",
       op.out_rank(0));
  need(!op.has_out[1] || op.out_rank(1) == 0, "the total weight has {} dimensions, it is one number",
       op.has_out[1] ? op.out_rank(1) : 0);
  if (op.in_rank(0) > 1) relate_labels(op, 0, r);
  relate_class_weights(op, 0, op.in_rank(0) > 1 ? input_number(*op.op, 2, "weight") : -1, r);
  for (int64_t d = 0; d < op.in_rank(1); ++d) {
    if (reduction_of(op, 3) == kMean)
      r.freeze(input_dim(1, d), "a mean over all rows");
    else
      r.reduced.push_back(input_dim(1, d));
    if (reduction_of(op, 3) == kNone) r.same(input_dim(1, d), output_dim(0, d));
  }
}

// nll_loss_backward(grad, x, target, weight, reduction, ignore, total weight) -> gx
void relate_nll_backward(const OpView& op, Relation& r) {
  relate_alike(op, 1, 0, r);
  if (op.in_rank(1) > 1) relate_labels(op, 1, r);
  relate_class_weights(op, 1, op.in_rank(1) > 1 ? input_number(*op.op, 3, "weight") : -1, r);
  for (int64_t d = 0; d < op.in_rank(0); ++d) r.same(input_dim(0, d), input_dim(2, d));
  r.linear = {{0}};
}

// (x, y[, weight], reduction): one number of each pair, their sum or their mean
template <size_t Reduction>
void relate_pairs(const OpView& op, Relation& r) {
  int64_t reduction = reduction_of(op, Reduction), rank = op.in_rank(0);
  if (reduction == kNone) return relate_broadcast(op, r);
  for (size_t k = 1; k < op.in.size(); ++k)
    for (int64_t d = 0, at = rank - op.in_rank(static_cast<int>(k)); d + at < rank; ++d)
      if (op.in[k][d] == op.in[0][d + at]) r.same(input_dim(0, d + at), input_dim(static_cast<int>(k), d));
  for (int64_t d = 0; d < rank; ++d) {
    if (reduction == kMean)
      r.freeze(input_dim(0, d), "a mean divides by the whole size");
    else
      r.reduced.push_back(input_dim(0, d));
  }
}

// (grad, x, y[, weight], reduction), divided by the whole size for a mean
template <size_t Reduction>
void relate_pairs_backward(const OpView& op, Relation& r) {
  relate_broadcast(op, r);
  if (reduction_of(op, Reduction) == kMean)
    for (int64_t d = 0; d < op.out_rank(0); ++d)
      r.freeze(output_dim(0, d), "a mean divides by the whole size");
  r.linear = {{0}};
}

// mse_loss_backward(grad, x, y, reduction): 2 grad (x - y)
void relate_mse_backward(const OpView& op, Relation& r) {
  relate_pairs_backward<3>(op, r);
  r.linear.push_back({1, 2});
}

constexpr Row kRows[] = {
    {.target = "aten.nll_loss_forward.default",
     .arguments = "self target weight reduction ignore_index",
     .outputs = 2,
     .relate = relate_nll,
     .cost = CostKind::kCrossEntropy},
    {.target = "aten.nll_loss_backward.default",
     .arguments = "grad_output self target weight reduction ignore_index total_weight",
     .relate = relate_nll_backward,
     .cost = CostKind::kCrossEntropy},
    {.target = "aten.nll_loss2d_forward.default",
     .arguments = "self target weight reduction ignore_index",
     .outputs = 2,
     .relate = relate_nll},
    {.target = "aten.nll_loss2d_backward.default",
     .arguments = "grad_output self target weight reduction ignore_index total_weight",
     .relate = relate_nll_backward},
    {.target = "aten.mse_loss.default",
     .arguments = "self target reduction",
     .relate = relate_pairs<2>,
     .workspace = squared_error_workspace,
     .retained = squared_error_retained},
    {.target = "aten.mse_loss_backward.default",
     .arguments = "grad_output self target reduction",
     .relate = relate_mse_backward,
     .workspace = promoted_workspace},
    {.target = "aten.smooth_l1_loss.default",
     .arguments = "self target reduction beta",
     .relate = relate_pairs<2>,
     .workspace = squared_error_workspace,
     .retained = squared_error_retained},
    {.target = "aten.smooth_l1_loss_backward.default",
     .arguments = "grad_output self target reduction beta",
     .relate = relate_pairs_backward<3>},
    {.target = "aten.huber_loss.default",
     .arguments = "self target reduction delta",
     .relate = relate_pairs<2>,
     .workspace = huber_workspace},
    {.target = "aten.huber_loss_backward.default",
     .arguments = "grad_output self target reduction delta",
     .relate = relate_pairs_backward<3>},
    {.target = "aten.soft_margin_loss.default",
     .arguments = "self target reduction",
     .relate = relate_pairs<2>,
     .workspace = soft_margin_workspace,
     .retained = squared_error_retained},
    {.target = "aten.soft_margin_loss_backward.default",
     .arguments = "grad_output self target reduction",
     .relate = relate_pairs_backward<3>,
     .workspace = soft_margin_backward_workspace},
    {.target = "aten.binary_cross_entropy.default",
     .arguments = "self target weight reduction",
     .relate = relate_pairs<3>,
     .workspace = cross_entropy_workspace,
     .retained = squared_error_retained},
    {.target = "aten.binary_cross_entropy_backward.default",
     .arguments = "grad_output self target weight reduction",
     .relate = relate_pairs_backward<4>,
     .workspace = cross_entropy_backward_workspace},
};

}  // namespace

std::span<const Row> loss_rows() { return kRows; }

}  // namespace partita::model
