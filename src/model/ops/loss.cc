#include "model/ops/common.h"

namespace partita {
namespace {

constexpr int64_t kMean = 1;

// nll_loss_forward(x, target, weight, reduction, ignore) -> loss, total weight. A mean cannot be split over rows: the
// decomposition (decompose.h) turns it into a sum and a count first.
void relate_nll(const OpView& op, Relation& r) {
  r.same(input_dim(0, 0), input_dim(1, 0));
  r.freeze(input_dim(0, 1), "the label picks one class of all");
  if (int_argument(*op.op, 3, "reduction", kMean) == kMean) r.freeze(input_dim(0, 0), "a mean over all rows");
  else r.reduced = {input_dim(0, 0)};
}

// nll_loss_backward(grad, x, target, weight, reduction, ignore, total weight) -> gx
void relate_nll_backward(const OpView& op, Relation& r) {
  r.same(input_dim(1, 0), output_dim(0, 0));
  r.same(input_dim(2, 0), output_dim(0, 0));
  r.same(input_dim(1, 1), output_dim(0, 1));
  r.freeze(output_dim(0, 1), "the label picks one class of all");
  if (op.in_rank(0) == 1) r.same(input_dim(0, 0), output_dim(0, 0));
  r.linear = {{0}};
}

constexpr Row kRows[] = {
    {.target = "aten.nll_loss_forward.default",
     .relate = relate_nll,
     .flops = [](const OpView& op) { return static_cast<Flops>(op.in[1].empty() ? 1 : op.in[1][0]); }},
    {.target = "aten.nll_loss_backward.default", .relate = relate_nll_backward},
};

}  // namespace

std::span<const Row> loss_rows() { return kRows; }

}  // namespace partita
