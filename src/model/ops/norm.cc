#include "model/ops/common.h"
#include "model/ops/workspace.h"

namespace partita::model {
namespace {

// native_layer_norm(x, normalized_shape, weight, bias, eps) -> y, mean, rstd
void relate_layer_norm(const OpView& op, Relation& r) {
  int64_t rank = op.in_rank(0);
  int64_t outer = rank - static_cast<int64_t>(ints_argument(*op.op, 1, "normalized_shape").size());
  for (int k : {1, 2})
    need(op.out_rank(k) == rank, "a statistic has {} dimensions, what is normalized {}", op.out_rank(k),
         rank);
  for (int64_t d = 0; d < rank; ++d) {
    r.same(input_dim(0, d), output_dim(0, d));
    if (d < outer) {
      r.same(output_dim(0, d), output_dim(1, d));
      r.same(output_dim(0, d), output_dim(2, d));
    } else {
      r.freeze(input_dim(0, d), "layer norm needs the whole dimension");
      for (size_t k = 1; k < op.in.size(); ++k) r.same(input_dim(k, d - outer), output_dim(0, d));
    }
  }
}

// native_layer_norm_backward(grad, x, normalized_shape, mean, rstd, weight, bias, mask) -> gx, gw, gb
void relate_layer_norm_backward(const OpView& op, Relation& r) {
  int64_t rank = op.in_rank(0);
  int64_t outer = rank - static_cast<int64_t>(ints_argument(*op.op, 2, "normalized_shape").size());
  for (int64_t d = 0; d < rank; ++d) {
    r.same(input_dim(0, d), input_dim(1, d));
    if (op.has_out[0]) r.same(input_dim(0, d), output_dim(0, d));
    if (d < outer) {
      r.same(input_dim(0, d), input_dim(2, d));
      r.same(input_dim(0, d), input_dim(3, d));
      r.reduced.push_back(input_dim(0, d));
    } else {
      r.freeze(input_dim(0, d), "layer norm needs the whole dimension");
      for (size_t k = 4; k < op.in.size(); ++k) r.same(input_dim(k, d - outer), input_dim(0, d));
      for (size_t k = 1; k < op.out.size(); ++k)
        if (op.has_out[k]) r.same(output_dim(k, d - outer), input_dim(0, d));
    }
  }
  r.reads[2] = {0};  // the bias gradient is a plain sum of the incoming gradient
  r.linear = {{0}};
}

// Channels are (group, rest): whole groups and the batch are free, the rest lies inside one group.
void relate_groups(int64_t rank, int64_t group_size, int x, DimRef statistic_group, Relation& r) {
  r.equal.push_back({{input_dim(x, 1)}, {statistic_group, factor(0, group_size)}});
  r.freeze(factor(0, group_size), "group norm needs the whole group");
  for (int64_t d = 2; d < rank; ++d) r.freeze(input_dim(x, d), "group norm needs the whole group");
}

// native_group_norm(x, weight, bias, N, C, HxW, group, eps) -> y, mean, rstd of [N, group]
void relate_group_norm(const OpView& op, Relation& r) {
  relate_alike(op, 0, 0, r);
  need(op.out[1][1] > 0, "there are no groups");
  relate_groups(op.in_rank(0), op.in[0][1] / op.out[1][1], 0, output_dim(1, 1), r);
  r.same(output_dim(1, 1), output_dim(2, 1));
  for (int o : {1, 2}) r.same(output_dim(o, 0), input_dim(0, 0));
  for (size_t k = 1; k < op.in.size(); ++k) r.same(input_dim(static_cast<int>(k), 0), input_dim(0, 1));
}

// native_group_norm_backward(grad, x, mean, rstd, weight, N, C, HxW, group, mask) -> gx, gw, gb
void relate_group_norm_backward(const OpView& op, Relation& r) {
  for (int64_t d = 0; d < op.in_rank(0); ++d) r.same(input_dim(0, d), input_dim(1, d));
  if (op.has_out[0]) relate_alike(op, 1, 0, r);
  need(op.in[2][1] > 0, "there are no groups");
  relate_groups(op.in_rank(1), op.in[1][1] / op.in[2][1], 1, input_dim(2, 1), r);
  r.same(input_dim(2, 1), input_dim(3, 1));
  for (int k : {2, 3}) r.same(input_dim(k, 0), input_dim(1, 0));
  if (op.in.size() > 4) r.same(input_dim(4, 0), input_dim(1, 1));
  for (int o : {1, 2})
    if (op.has_out[o]) r.same(output_dim(o, 0), input_dim(1, 1));
  r.reduced = {input_dim(0, 0)};
  r.linear = {{0}};
}

// N and C of x, and the number of groups; HxW never changes.
void localize_groups(const Shape& x, const Shape& statistic, size_t first, Op& op) {
  set_argument(op, first, "N", Arg::of(x[0]));
  set_argument(op, first + 1, "C", Arg::of(x[1]));
  set_argument(op, first + 3, "group", Arg::of(statistic[1]));
}
void localize_group_norm(const OpView&, const OpView& local, Op& op) {
  localize_groups(local.in[0], local.out[1], 3, op);
}
void localize_group_norm_backward(const OpView&, const OpView& local, Op& op) {
  localize_groups(local.in[1], local.in[2], 5, op);
}

// Only the dimension that keeps its own norm is free.
void relate_weight_norm_of(const OpView& op, size_t dim_position, Relation& r) {
  int64_t rank = op.in_rank(0);
  int64_t dim = wrap_dim(int_argument(*op.op, dim_position, "dim", 0), rank);
  auto tie = [&](DimRef (*ref)(int, int64_t), int operand, const Sizes& shape) {
    for (int64_t d = 0; d < rank; ++d) {
      if (shape[d] == op.in[0][d] && (ref != input_dim || operand != 0))
        r.same(ref(operand, d), input_dim(0, d));
      if (d != dim) r.freeze(ref(operand, d), "the norm runs over this dimension");
    }
  };
  for (size_t k = 0; k < op.in.size(); ++k) tie(input_dim, static_cast<int>(k), op.in[k]);
  for (size_t o = 0; o < op.out.size(); ++o) tie(output_dim, static_cast<int>(o), op.out[o]);
}

// _weight_norm_interface(v, g, dim) -> w, norms
void relate_weight_norm(const OpView& op, Relation& r) { relate_weight_norm_of(op, 2, r); }
// _weight_norm_interface_backward(gw, v, g, norms, dim) -> gv, gg
void relate_weight_norm_backward(const OpView& op, Relation& r) {
  relate_weight_norm_of(op, 4, r);
  r.linear = {{0}};
}

constexpr Row kRows[] = {
    {.target = "aten.native_layer_norm.default",
     .arguments = "input normalized_shape weight bias eps",
     .outputs = 3,
     .relate = relate_layer_norm,
     .workspace = layer_norm_workspace},
    {.target = "aten.native_layer_norm_backward.default",
     .arguments = "grad_out input normalized_shape mean rstd weight bias output_mask",
     .outputs = 3,
     .relate = relate_layer_norm_backward,
     .workspace = layer_norm_backward_workspace},
    {.target = "aten.native_group_norm.default",
     .arguments = "input weight bias N C HxW group eps",
     .outputs = 3,
     .relate = relate_group_norm,
     .localize = localize_group_norm},
    {.target = "aten.native_group_norm_backward.default",
     .arguments = "grad_out input mean rstd weight N C HxW group output_mask",
     .outputs = 3,
     .relate = relate_group_norm_backward,
     .localize = localize_group_norm_backward,
     .workspace = group_norm_backward_workspace},
    {.target = "aten._weight_norm_interface.default",
     .arguments = "v g dim",
     .outputs = 2,
     .relate = relate_weight_norm},
    {.target = "aten._weight_norm_interface_backward.default",
     .arguments = "grad_w saved_v saved_g saved_norms dim",
     .outputs = 2,
     .relate = relate_weight_norm_backward},
};

}  // namespace

std::span<const Row> norm_rows() { return kRows; }

}  // namespace partita::model
