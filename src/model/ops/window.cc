// Ops that lay windows beside each other, or add them up again where they lay.
#include <algorithm>

#include "model/ops/planes.h"
#include "model/ops/workspace.h"

namespace partita::model {
namespace {

constexpr const char* kWindows = "windows reach across pieces";

// im2col(x): image (n) c h w, columns (n) (c k) l with k places of a window and l windows.
void relate_columns(const OpView& op, DimOf image, DimOf columns, int64_t rank, size_t kernel, Relation& r) {
  std::vector<int64_t> sizes = ints_argument(*op.op, kernel, "kernel_size");
  int64_t places = 1, channels = rank - 3;
  for (int64_t size : sizes) {
    need(size > 0 && size < 1 << 20, "a window of {} places", size);
    places *= size;
  }
  if (rank == 4) r.same(image(0, 0), columns(0, 0));
  r.equal.push_back({{columns(0, channels)}, {image(0, channels), factor(0, places)}});
  r.freeze(factor(0, places), kWindows);
  for (DimRef ref : {image(0, rank - 2), image(0, rank - 1), columns(0, rank - 2)}) r.freeze(ref, kWindows);
  r.linear = {{0}};
}

// im2col(x, kernel_size, dilation, padding, stride)
void relate_im2col(const OpView& op, Relation& r) {
  relate_columns(op, input_dim, output_dim, op.in_rank(0), 1, r);
}

// col2im(x, output_size, kernel_size, dilation, padding, stride)
void relate_col2im(const OpView& op, Relation& r) {
  relate_columns(op, output_dim, input_dim, op.out_rank(0), 2, r);
}

struct Windows {
  int64_t dim, size, step;
};

Windows windows_of(const Op& op, size_t first, int64_t rank, std::string_view dim) {
  return {wrap_dim(int_argument(op, first, dim, 0), rank), int_argument(op, first + 1, "size", 1),
          int_argument(op, first + 2, "step", 1)};
}

// Windows side by side that cover the dimension: it is (windows, places).
bool tiles(const Windows& w, int64_t whole, int64_t count) {
  return w.size == w.step && count * w.size == whole;
}

// `line` has the dimension; `lain` has windows in its place and their places at the end.
void relate_windows(const Windows& w, const Sizes& line_sizes, const Sizes& lain_sizes, DimOf line,
                    DimOf lain, Relation& r) {
  int64_t rank = static_cast<int64_t>(line_sizes.size());
  for (int64_t d = 0; d < rank; ++d) {
    if (d != w.dim) {
      r.same(line(0, d), lain(0, d));
    } else if (tiles(w, line_sizes[d], lain_sizes[d])) {
      r.equal.push_back({{line(0, d)}, {lain(0, d), lain(0, rank)}});
    } else {
      for (DimRef ref : {line(0, d), lain(0, d), lain(0, rank)}) r.freeze(ref, kWindows);
    }
  }
  r.linear = {{0}};
}

// unfold(x, dimension, size, step)
void relate_unfold(const OpView& op, Relation& r) {
  relate_windows(windows_of(*op.op, 1, op.in_rank(0), "dimension"), op.in[0], op.out[0], input_dim,
                 output_dim, r);
}

// unfold_backward(grad, input_sizes, dim, size, step)
void relate_unfold_backward(const OpView& op, Relation& r) {
  need_sizes(*op.op, 1, "input_sizes", op.out[0]);
  relate_windows(windows_of(*op.op, 2, op.out_rank(0), "dim"), op.out[0], op.in[0], output_dim, input_dim, r);
}

// A part of the places makes windows that narrow, side by side as before.
void localize_windows(const Sizes& whole, const Sizes& local, size_t size, Op& op) {
  if (whole.back() == local.back()) return;
  set_argument(op, size, "size", Arg::of(local.back()));
  set_argument(op, size + 1, "step", Arg::of(local.back()));
}

void localize_unfold(const OpView& whole, const OpView& local, Op& op) {
  localize_windows(whole.out[0], local.out[0], 2, op);
}

void localize_unfold_backward(const OpView& whole, const OpView& local, Op& op) {
  set_argument(op, 1, "input_sizes", Arg::list(local.out[0]));
  localize_windows(whole.in[0], local.in[0], 3, op);
}

// Both make a result of the size of their input, which then grows (into another place) or keeps what it has
// too much.
Bytes resized_workspace(const OpView& local) {
  bool grows = numel(local.out[0]) > numel(local.in[0]);
  return first_copy_workspace(local) + (grows ? numel(local.in[0]) * dtype_bytes(local.dtype) : 0);
}

Bytes resized_retained(const OpView& local) {
  return std::max<int64_t>(0, numel(local.in[0]) - numel(local.out[0])) * dtype_bytes(local.dtype);
}

// The places that windows reach, where these overlap.
Bytes unfold_backward_workspace(const OpView& local) {
  Windows w = windows_of(*local.op, 2, local.out_rank(0), "dim");
  constexpr Bytes kPlace = 8;
  return w.step >= w.size ? 0 : kPlace * ((local.in[0][w.dim] - 1) * w.step + w.size);
}

constexpr Row kRows[] = {
    {.target = "aten.im2col.default",
     .arguments = "self kernel_size dilation padding stride",
     .relate = relate_im2col,
     .workspace = resized_workspace,
     .retained = resized_retained},
    {.target = "aten.col2im.default",
     .arguments = "self output_size kernel_size dilation padding stride",
     .relate = relate_col2im,
     .workspace = resized_workspace,
     .retained = resized_retained},
    {.target = "aten.unfold.default",
     .arguments = "self dimension size step",
     .relate = relate_unfold,
     .localize = localize_unfold,
     .view = true},
    {.target = "aten.unfold_backward.default",
     .arguments = "grad_in input_sizes dim size step",
     .relate = relate_unfold_backward,
     .localize = localize_unfold_backward,
     .workspace = unfold_backward_workspace},
};

}  // namespace

std::span<const Row> window_rows() { return kRows; }

}  // namespace partita::model
