#include "model/ops/common.h"

namespace partita {
namespace {

// Softmax over one dimension: every other dimension is free.
void relate_softmax_over(const OpView& op, size_t dim_position, Relation& r) {
  relate_broadcast(op, r);
  int64_t dim = wrap_dim(int_argument(*op.op, dim_position, "dim", -1), op.out_rank(0));
  r.freeze(output_dim(0, dim), "softmax needs the whole dimension");
}

void relate_softmax(const OpView& op, Relation& r) { relate_softmax_over(op, 1, r); }
void relate_softmax_backward(const OpView& op, Relation& r) {
  relate_softmax_over(op, 2, r);
  r.linear = {{0}};
}

// native_layer_norm(x, normalized_shape, weight, bias, eps) -> y, mean, rstd
void relate_layer_norm(const OpView& op, Relation& r) {
  int64_t rank = op.in_rank(0);
  int64_t outer = rank - static_cast<int64_t>(ints_argument(*op.op, 1, "normalized_shape").size());
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
}

Flops softmax_flops(const OpView& op) { return 4.0 * static_cast<Flops>(numel(op.out[0])); }
Flops layer_norm_flops(const OpView& op) { return 8.0 * static_cast<Flops>(numel(op.in[0])); }

constexpr Row kRows[] = {
    {.target = "aten._softmax.default", .relate = relate_softmax, .flops = softmax_flops},
    {.target = "aten._log_softmax.default", .relate = relate_softmax, .flops = softmax_flops},
    {.target = "aten._safe_softmax.default", .relate = relate_softmax, .flops = softmax_flops},
    {.target = "aten._softmax_backward_data.default", .relate = relate_softmax_backward, .flops = softmax_flops},
    {.target = "aten._log_softmax_backward_data.default", .relate = relate_softmax_backward, .flops = softmax_flops},
    {.target = "aten.native_layer_norm.default", .relate = relate_layer_norm, .flops = layer_norm_flops},
    {.target = "aten.native_layer_norm_backward.default",
     .relate = relate_layer_norm_backward,
     .flops = layer_norm_flops},
};

}  // namespace

std::span<const Row> norm_rows() { return kRows; }

}  // namespace partita
