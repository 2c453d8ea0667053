// Ops that cut a dimension into pieces or join pieces: one rule, Place, states them all.
#include "model/ops/common.h"

namespace partita {
namespace {

// Splits of the inner part of a dimension keep a piece's share of it, so bounds scale with the local size.
int64_t scaled(int64_t bound, int64_t whole, int64_t local) { return whole == 0 ? 0 : bound * local / whole; }

struct SliceArguments {
  int64_t dim, start, step;
};

SliceArguments slice_arguments(const OpView& op, const Shape& big, size_t first) {
  SliceArguments s;
  s.dim = wrap_dim(int_argument(*op.op, first, "dim", 0), static_cast<int64_t>(big.size()));
  s.start = int_argument(*op.op, first + 1, "start", 0);
  s.step = int_argument(*op.op, first + 3, "step", 1);
  if (s.start < 0) s.start += big[s.dim];
  return s;
}

// `big` and `small` name the operands: slice reads the big one, slice_backward writes it.
void relate_slice_of(const SliceArguments& s, const Shape& big, const Shape& small, DimRef (*big_dim)(int, int64_t),
                     DimRef (*small_dim)(int, int64_t), Relation& r) {
  for (int64_t d = 0; d < static_cast<int64_t>(big.size()); ++d) {
    if (d != s.dim) {
      r.same(big_dim(0, d), small_dim(0, d));
    } else if (s.step == 1) {
      relate_place(r, big_dim(0, d), small_dim(0, d), s.start, big[d], small[d]);
    } else {
      r.freeze(big_dim(0, d), "a slice with a step");
      r.freeze(small_dim(0, d), "a slice with a step");
    }
  }
  r.linear = {{0}};
}

void relate_slice(const OpView& op, Relation& r) {
  relate_slice_of(slice_arguments(op, op.in[0], 1), op.in[0], op.out[0], input_dim, output_dim, r);
}

void localize_slice(const OpView& whole, const OpView& local, Op& op) {
  SliceArguments s = slice_arguments(whole, whole.in[0], 1);
  if (s.step != 1) return;
  int64_t start = scaled(s.start, whole.in[0][s.dim], local.in[0][s.dim]);
  set_argument(op, 1, "dim", Arg::of(s.dim));
  set_argument(op, 2, "start", Arg::of(start));
  set_argument(op, 3, "end", Arg::of(start + local.out[0][s.dim]));
}

// slice_backward(grad, input_sizes, dim, start, end, step)
void relate_slice_backward(const OpView& op, Relation& r) {
  relate_slice_of(slice_arguments(op, op.out[0], 2), op.out[0], op.in[0], output_dim, input_dim, r);
}

void localize_slice_backward(const OpView& whole, const OpView& local, Op& op) {
  SliceArguments s = slice_arguments(whole, whole.out[0], 2);
  set_argument(op, 1, "input_sizes", Arg::list(local.out[0]));
  if (s.step != 1) return;
  int64_t start = scaled(s.start, whole.out[0][s.dim], local.out[0][s.dim]);
  set_argument(op, 3, "start", Arg::of(start));
  set_argument(op, 4, "end", Arg::of(start + local.in[0][s.dim]));
}

void relate_select(const OpView& op, Relation& r) {
  int64_t dim = wrap_dim(int_argument(*op.op, 1, "dim", 0), op.in_rank(0));
  for (int64_t d = 0; d < op.in_rank(0); ++d) {
    if (d == dim) r.freeze(input_dim(0, d), "select takes one element");
    else r.same(input_dim(0, d), output_dim(0, d - (d > dim)));
  }
  r.linear = {{0}};
}

// select_backward(grad, input_sizes, dim, index)
void relate_select_backward(const OpView& op, Relation& r) {
  int64_t dim = wrap_dim(int_argument(*op.op, 2, "dim", 0), op.out_rank(0));
  for (int64_t d = 0; d < op.out_rank(0); ++d) {
    if (d == dim) r.freeze(output_dim(0, d), "select takes one element");
    else r.same(output_dim(0, d), input_dim(0, d - (d > dim)));
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
      if (d == dim) relate_place(r, input_dim(0, d), output_dim(k, d), start, op.in[0][d], op.out[k][d]);
      else r.same(input_dim(0, d), output_dim(k, d));
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
    for (int64_t d = 0; d < op.in_rank(k); ++d) {
      if (d == dim) relate_place(r, output_dim(0, d), input_dim(k, d), start, op.out[0][d], op.in[k][d]);
      else r.same(input_dim(k, d), output_dim(0, d));
    }
    start += op.in[k][dim];
    all.push_back(static_cast<int>(k));
  }
  r.linear = {all};
}

// Pads are given from the last dimension backwards, (before, after) each.
void relate_pad(const OpView& op, Relation& r) {
  std::vector<int64_t> pad = ints_argument(*op.op, 1, "pad");
  int rank = op.in_rank(0);
  for (int d = 0; d < rank; ++d) {
    size_t at = 2 * static_cast<size_t>(rank - 1 - d);
    int64_t before = at < pad.size() ? pad[at] : 0, after = at + 1 < pad.size() ? pad[at + 1] : 0;
    if (before == 0 && after == 0) {
      r.same(input_dim(0, d), output_dim(0, d));
    } else {
      r.freeze(input_dim(0, d), "padded");
      r.freeze(output_dim(0, d), "padded");
    }
  }
}

constexpr Row kRows[] = {
    {.target = "aten.slice.Tensor", .relate = relate_slice, .localize = localize_slice, .view = true},
    {.target = "aten.slice_backward.default", .relate = relate_slice_backward, .localize = localize_slice_backward},
    {.target = "aten.select.int", .relate = relate_select, .view = true},
    {.target = "aten.select_backward.default",
     .relate = relate_select_backward,
     .localize = localize_select_backward},
    {.target = "aten.split.Tensor", .relate = relate_split, .localize = localize_split, .view = true},
    {.target = "aten.split_with_sizes.default",
     .relate = relate_split,
     .localize = localize_split_sizes,
     .view = true},
    {.target = "aten.cat.default", .relate = relate_cat},
    {.target = "aten.constant_pad_nd.default", .relate = relate_pad},
};

}  // namespace

std::span<const Row> place_rows() { return kRows; }

}  // namespace partita
