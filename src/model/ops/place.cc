// Ops that cut a dimension into pieces or join pieces: one rule, Place, states them all.
#include "model/ops/common.h"
#include "model/ops/slice_arguments.h"

namespace partita::model {
namespace {

// slice(x, dim, start, end, step)
void relate_slice(const OpView& op, Relation& r) {
  SliceArguments s = slice_arguments(*op.op, op.in[0], 1);
  for (int64_t d = 0; d < op.in_rank(0); ++d) {
    if (d != s.dim)
      r.same(input_dim(0, d), output_dim(0, d));
    else
      relate_slice_dim(s, input_dim(0, d), output_dim(0, d), op.in[0][d], op.out[0][d], r);
  }
  r.linear = {{0}};
}

void localize_slice_of(const OpView& whole, const OpView& local, Op& op) {
  localize_slice(slice_arguments(*whole.op, whole.in[0], 1), whole.in[0], local.in[0], local.out[0], 1, op);
}

// slice_backward(grad, input_sizes, dim, start, end, step)
void relate_slice_backward(const OpView& op, Relation& r) {
  SliceArguments s = slice_arguments(*op.op, op.out[0], 2);
  for (int64_t d = 0; d < op.in_rank(0); ++d) {
    if (d != s.dim)
      r.same(output_dim(0, d), input_dim(0, d));
    else
      relate_slice_dim(s, output_dim(0, d), input_dim(0, d), op.out[0][d], op.in[0][d], r);
  }
  r.linear = {{0}};
}

void localize_slice_backward(const OpView& whole, const OpView& local, Op& op) {
  set_argument(op, 1, "input_sizes", Arg::list(local.out[0]));
  localize_slice(slice_arguments(*whole.op, whole.out[0], 2), whole.out[0], local.out[0], local.in[0], 2, op);
}

void relate_select(const OpView& op, Relation& r) {
  int64_t dim = wrap_dim(int_argument(*op.op, 1, "dim", 0), op.in_rank(0));
  for (int64_t d = 0; d < op.in_rank(0); ++d) {
    if (d == dim)
      r.freeze(input_dim(0, d), "select takes one element");
    else
      r.same(input_dim(0, d), output_dim(0, d - (d > dim)));
  }
  r.linear = {{0}};
}

// select_backward(grad, input_sizes, dim, index)
void relate_select_backward(const OpView& op, Relation& r) {
  int64_t dim = wrap_dim(int_argument(*op.op, 2, "dim", 0), op.out_rank(0));
  for (int64_t d = 0; d < op.out_rank(0); ++d) {
    if (d == dim)
      r.freeze(output_dim(0, d), "select takes one element");
    else
      r.same(output_dim(0, d), input_dim(0, d - (d > dim)));
  }
  r.linear = {{0}};
}

void localize_select_backward(const OpView&, const OpView& local, Op& op) {
  set_argument(op, 1, "input_sizes", Arg::list(local.out[0]));
}

void relate_split(const OpView& op, Relation& r) {
  int64_t dim = wrap_dim(int_argument(*op.op, 2, "dim", 0), op.in_rank(0)), start = 0;
  for (size_t k = 0; k < op.out.size(); ++k) {
    for (int64_t d = 0; d < op.in_rank(0); ++d) {
      if (d == dim)
        relate_place(r, input_dim(0, d), output_dim(k, d), start, op.in[0][d], op.out[k][d]);
      else
        r.same(input_dim(0, d), output_dim(k, d));
    }
    start += op.out[k][dim];
  }
  r.linear = {{0}};
}

void localize_split(const OpView& whole, const OpView& local, Op& op) {
  int64_t dim = wrap_dim(int_argument(*whole.op, 2, "dim", 0), whole.in_rank(0));
  set_argument(op, 1, "split_size", Arg::of(local.out[0][dim]));
}

void localize_split_sizes(const OpView& whole, const OpView& local, Op& op) {
  int64_t dim = wrap_dim(int_argument(*whole.op, 2, "dim", 0), whole.in_rank(0));
  std::vector<int64_t> sizes;
  for (const Shape& out : local.out) sizes.push_back(out[dim]);
  set_argument(op, 1, "split_sizes", Arg::list(sizes));
}

void relate_cat(const OpView& op, Relation& r) {
  int64_t dim = wrap_dim(int_argument(*op.op, 1, "dim", 0), op.out_rank(0)), start = 0;
  std::vector<int> all;
  for (size_t k = 0; k < op.in.size(); ++k) {
    // cat skips an empty vector, whatever the rank of the others.
    if (op.in_rank(k) != op.out_rank(0)) {
      r.freeze(input_dim(k, 0), "empty");
      all.push_back(static_cast<int>(k));
      continue;
    }
    for (int64_t d = 0; d < op.in_rank(k); ++d) {
      if (d == dim)
        relate_place(r, output_dim(0, d), input_dim(k, d), start, op.out[0][d], op.in[k][d]);
      else
        r.same(input_dim(k, d), output_dim(0, d));
    }
    start += op.in[k][dim];
    all.push_back(static_cast<int>(k));
  }
  r.linear = {all};
}

// stack(tensors, dim): a new dimension, one tensor each.
void relate_stack(const OpView& op, Relation& r) {
  int64_t dim = wrap_dim(int_argument(*op.op, 1, "dim", 0), op.out_rank(0));
  std::vector<int> all;
  for (size_t k = 0; k < op.in.size(); ++k) {
    all.push_back(static_cast<int>(k));
    for (int64_t d = 0; d < op.in_rank(static_cast<int>(k)); ++d)
      r.same(input_dim(static_cast<int>(k), d), output_dim(0, d + (d >= dim)));
  }
  r.freeze(output_dim(0, dim), "one tensor for each place");
  r.linear = {all};
}

void relate_unbind(const OpView& op, Relation& r) {
  int64_t dim = wrap_dim(int_argument(*op.op, 1, "dim", 0), op.in_rank(0));
  for (size_t k = 0; k < op.out.size(); ++k)
    for (int64_t d = 0; d < op.out_rank(static_cast<int>(k)); ++d)
      r.same(input_dim(0, d + (d >= dim)), output_dim(static_cast<int>(k), d));
  r.freeze(input_dim(0, dim), "one output for each place");
  r.linear = {{0}};
}

/// What is added before and after dimension d; pads are given from the last dimension backwards.
std::pair<int64_t, int64_t> pad_of(const std::vector<int64_t>& pad, int64_t rank, int64_t d) {
  size_t at = 2 * static_cast<size_t>(rank - 1 - d);
  if (at + 1 >= pad.size()) return {0, 0};
  constexpr int64_t kFar = int64_t{1} << 48;
  for (size_t i : {at, at + 1}) need(pad[i] > -kFar && pad[i] < kFar, "a padding of {}", pad[i]);
  return {pad[at], pad[at + 1]};
}

// constant_pad_nd(x, pad, value). A negative pad cuts off.
void relate_pad(const OpView& op, Relation& r) {
  std::vector<int64_t> pad = ints_argument(*op.op, 1, "pad");
  for (int64_t d = 0; d < op.in_rank(0); ++d) {
    auto [before, after] = pad_of(pad, op.in_rank(0), d);
    DimRef x = input_dim(0, d), y = output_dim(0, d);
    if (before >= 0 && after >= 0) {
      relate_place(r, y, x, before, op.out[0][d], op.in[0][d]);
    } else if (before <= 0 && after <= 0) {
      relate_place(r, x, y, -before, op.in[0][d], op.out[0][d]);
    } else {
      r.freeze(x, "cut on one side, padded on the other");
      r.freeze(y, "cut on one side, padded on the other");
    }
  }
  if (number_argument(*op.op, 2, "value", 0) == 0) r.linear = {{0}};
}

void localize_pad(const OpView& whole, const OpView& local, Op& op) {
  std::vector<int64_t> pad = ints_argument(*whole.op, 1, "pad");
  int64_t rank = whole.in_rank(0);
  for (size_t at = 0; at + 1 < pad.size(); at += 2) {
    int64_t d = rank - 1 - static_cast<int64_t>(at / 2);
    if (whole.in[0][d] == 0 || local.in[0][d] == whole.in[0][d]) continue;
    pad[at] = pad[at] * local.in[0][d] / whole.in[0][d];
    pad[at + 1] = local.out[0][d] - local.in[0][d] - pad[at];
  }
  set_argument(op, 1, "pad", Arg::list(pad));
}

constexpr Row kRows[] = {
    {.target = "aten.slice.Tensor",
     .arguments = "self dim start end step",
     .relate = relate_slice,
     .localize = localize_slice_of,
     .view = true},
    {.target = "aten.slice_backward.default",
     .arguments = "grad_output input_sizes dim start end step",
     .relate = relate_slice_backward,
     .localize = localize_slice_backward},
    {.target = "aten.select.int", .arguments = "self dim index", .relate = relate_select, .view = true},
    {.target = "aten.select_backward.default",
     .arguments = "grad_output input_sizes dim index",
     .relate = relate_select_backward,
     .localize = localize_select_backward},
    {.target = "aten.split.Tensor",
     .arguments = "self split_size dim",
     .outputs = Row::kAnyNumber,
     .relate = relate_split,
     .localize = localize_split,
     .view = true},
    {.target = "aten.split_with_sizes.default",
     .arguments = "self split_sizes dim",
     .outputs = Row::kAnyNumber,
     .relate = relate_split,
     .localize = localize_split_sizes,
     .view = true},
    {.target = "aten.cat.default",
     .arguments = "tensors dim",
     .relate = relate_cat,
     .cost = CostKind::kReorder},
    {.target = "aten.stack.default", .arguments = "tensors dim", .relate = relate_stack},
    {.target = "aten.unbind.int",
     .arguments = "self dim",
     .outputs = Row::kAnyNumber,
     .relate = relate_unbind,
     .view = true},
    {.target = "aten.constant_pad_nd.default",
     .arguments = "self pad value",
     .relate = relate_pad,
     .localize = localize_pad},
};

}  // namespace

std::span<const Row> place_rows() { return kRows; }

}  // namespace partita::model
