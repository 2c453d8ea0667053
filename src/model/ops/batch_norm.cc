#include "model/ops/common.h"
#include "model/ops/workspace.h"

namespace partita::model {
namespace {

// x = n c ...; everything else has one number a channel. With statistics of the batch only channels are free.
void relate_channels(const OpView& op, int x, bool training, Relation& r) {
  for (size_t k = 0; k < op.in.size(); ++k)
    if (op.in_rank(static_cast<int>(k)) == 1) r.same(input_dim(static_cast<int>(k), 0), input_dim(x, 1));
  for (size_t o = 0; o < op.out.size(); ++o) {
    int out = static_cast<int>(o);
    // Without statistics of the batch the saved ones are empty.
    bool per_channel = op.has_out[o] && op.out_rank(out) == 1 && op.out[o][0] == op.in[x][1];
    if (per_channel) r.same(output_dim(out, 0), input_dim(x, 1));
  }
  for (int64_t d = 0; d < op.in_rank(x); ++d)
    if (d != 1 && training) r.freeze(input_dim(x, d), "statistics of the whole batch");
}

// (x, weight, bias, mean, variance, training, momentum, eps) -> y, saved mean, saved rstd, new mean, new
// variance
void relate_functional(const OpView& op, Relation& r) {
  bool training = bool_argument(*op.op, 5, "training", true);
  relate_alike(op, 0, 0, r);
  relate_channels(op, 0, training, r);
  int mean = input_number(*op.op, 3, "running_mean");
  if (!training) r.reads = {{1, {}}, {2, {}}, {3, {mean}}, {4, {mean + 1}}};
}

// (x, weight, bias, training, momentum, eps) -> y, saved mean, saved rstd: always of the batch
void relate_no_stats(const OpView& op, Relation& r) {
  relate_alike(op, 0, 0, r);
  relate_channels(op, 0, true, r);
}

// native_batch_norm_backward(grad, x, weight, mean, variance, saved mean, saved rstd, train, eps, mask) ->
// gx, gw, gb
void relate_backward(const OpView& op, Relation& r) {
  bool training = bool_argument(*op.op, 7, "train", true);
  for (int64_t d = 0; d < op.in_rank(0); ++d) {
    r.same(input_dim(0, d), input_dim(1, d));
    if (op.has_out[0]) r.same(input_dim(0, d), output_dim(0, d));
    if (d != 1) r.reduced.push_back(input_dim(0, d));
  }
  relate_channels(op, 1, training, r);
  r.linear = {{0}};
}

constexpr Row kRows[] = {
    {.target = "aten._native_batch_norm_legit_functional.default",
     .arguments = "input weight bias running_mean running_var training momentum eps",
     .outputs = 5,
     .relate = relate_functional,
     .workspace = batch_norm_workspace},
    {.target = "aten._native_batch_norm_legit.no_stats",
     .arguments = "input weight bias training momentum eps",
     .outputs = 3,
     .relate = relate_no_stats,
     .workspace = batch_norm_workspace},
    {.target = "aten.native_batch_norm_backward.default",
     .arguments =
         "grad_out input weight running_mean running_var save_mean save_invstd train eps output_mask",
     .outputs = 3,
     .relate = relate_backward,
     .workspace = batch_norm_backward_workspace},
};

}  // namespace

std::span<const Row> batch_norm_rows() { return kRows; }

}  // namespace partita::model
