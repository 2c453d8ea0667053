// Ops that look along some dimensions as a whole and treat every other one apart.
#include <algorithm>
#include <numeric>

#include "model/ops/common.h"
#include "model/ops/workspace.h"

namespace partita::model {
namespace {

using Dims = std::vector<int64_t>;

Dims all_dims(int64_t rank) {
  Dims dims(static_cast<size_t>(rank));
  std::iota(dims.begin(), dims.end(), 0);
  return dims;
}

/// The dimensions an argument names; all where it names none.
Dims dims_argument(const OpView& op, size_t position, std::string_view name) {
  Dims dims = ints_argument(*op.op, position, name);
  if (dims.empty()) return all_dims(op.in_rank(0));
  for (int64_t& dim : dims) dim = wrap_dim(dim, op.in_rank(0));
  return dims;
}

bool contains(const Dims& dims, int64_t d) { return std::find(dims.begin(), dims.end(), d) != dims.end(); }

// The result keeps every dimension, whole ones possibly with another size.
void relate_along(const OpView& op, const Dims& whole, const char* why, Relation& r) {
  for (size_t o = 0; o < op.out.size(); ++o) {
    for (int64_t d = 0; d < op.in_rank(0); ++d) {
      DimRef x = input_dim(0, d), y = output_dim(static_cast<int>(o), d);
      if (op.in[0][d] == op.out[o][d]) r.same(x, y);
      if (!contains(whole, d)) continue;
      r.freeze(x, why);
      r.freeze(y, why);
    }
  }
}

// The result lacks the whole dimensions, or keeps them with size 1.
void relate_without(const OpView& op, const Dims& whole, bool keep, const char* why, Relation& r) {
  for (size_t o = 0; o < op.out.size(); ++o) {
    int64_t at = 0;
    for (int64_t d = 0; d < op.in_rank(0); ++d) {
      if (contains(whole, d)) {
        r.freeze(input_dim(0, d), why);
        at += keep;
      } else {
        r.same(input_dim(0, d), output_dim(static_cast<int>(o), at++));
      }
    }
  }
}

void relate_topk(const OpView& op, Relation& r) {
  relate_along(op, {wrap_dim(int_argument(*op.op, 2, "dim", -1), op.in_rank(0))},
               "the largest of the whole dimension", r);
}

// (x, dim): each place of the result looks at all places before it, or at all.
void relate_dim(const OpView& op, Relation& r) {
  relate_along(op, {wrap_dim(int_argument(*op.op, 1, "dim", -1), op.in_rank(0))},
               "each place depends on others of the dimension", r);
}

void relate_cumsum(const OpView& op, Relation& r) {
  relate_dim(op, r);
  r.linear = {{0}};
}

// sort.stable(x, stable, dim, descending)
void relate_sort_stable(const OpView& op, Relation& r) {
  relate_along(op, {wrap_dim(int_argument(*op.op, 2, "dim", -1), op.in_rank(0))},
               "each place depends on others of the dimension", r);
}

void relate_flip(const OpView& op, Relation& r) {
  Dims dims = ints_argument(*op.op, 1, "dims");
  for (int64_t& dim : dims) dim = wrap_dim(dim, op.in_rank(0));
  relate_along(op, dims, "the end comes first", r);
  r.linear = {{0}};
}

void relate_roll(const OpView& op, Relation& r) {
  relate_along(op, dims_argument(op, 2, "dims"), "the end comes first", r);
  r.linear = {{0}};
}

void relate_triangle(const OpView& op, Relation& r) {
  relate_along(op, {op.in_rank(0) - 2, op.in_rank(0) - 1}, "the diagonal counts rows and columns", r);
  r.linear = {{0}};
}

void relate_max_dim(const OpView& op, Relation& r) {
  Dims dims = dims_argument(op, 1, "dim");
  relate_without(op, dims, bool_argument(*op.op, 2, "keepdim", false), "the largest of the whole dimension",
                 r);
}

// (x, k, dim, keepdim)
void relate_kth(const OpView& op, Relation& r) {
  relate_without(op, {wrap_dim(int_argument(*op.op, 2, "dim", -1), op.in_rank(0))},
                 bool_argument(*op.op, 3, "keepdim", false), "one of the whole dimension in order", r);
}

// (x, dim, keepdim), the last dimension where none is named
void relate_one_of(const OpView& op, Relation& r) {
  relate_without(op, {wrap_dim(int_argument(*op.op, 1, "dim", -1), op.in_rank(0))},
                 bool_argument(*op.op, 2, "keepdim", false), "one number of the whole dimension", r);
}

// (x, dim, correction, keepdim)
void relate_variance(const OpView& op, Relation& r) {
  relate_without(op, dims_argument(op, 1, "dim"), bool_argument(*op.op, 3, "keepdim", false),
                 "distances from the mean of the whole", r);
}

// (x): one number of all elements
void relate_all(const OpView& op, Relation& r) {
  relate_without(op, all_dims(op.in_rank(0)), false, "one number of all elements", r);
}

void relate_norm(const OpView& op, Relation& r) {
  Dims dims = dims_argument(op, 2, "dim");
  relate_without(op, dims, bool_argument(*op.op, 3, "keepdim", false), "a root of the whole sum", r);
}

constexpr Row kRows[] = {
    {.target = "aten.topk.default",
     .arguments = "self k dim largest sorted",
     .outputs = 2,
     .relate = relate_topk},
    {.target = "aten.cumsum.default",
     .arguments = "self dim dtype",
     .relate = relate_cumsum,
     .workspace = conversion_workspace},
    {.target = "aten.cumprod.default",
     .arguments = "self dim dtype",
     .relate = relate_dim,
     .workspace = conversion_workspace},
    {.target = "aten.cummax.default", .arguments = "self dim", .outputs = 2, .relate = relate_dim},
    {.target = "aten.cummin.default", .arguments = "self dim", .outputs = 2, .relate = relate_dim},
    {.target = "aten.logcumsumexp.default", .arguments = "self dim", .relate = relate_dim},
    {.target = "aten.sort.default",
     .arguments = "self dim descending",
     .outputs = 2,
     .relate = relate_dim,
     .workspace = sort_workspace},
    {.target = "aten.sort.stable",
     .arguments = "self stable dim descending",
     .outputs = 2,
     .relate = relate_sort_stable,
     .workspace = sort_workspace},
    {.target = "aten.flip.default", .arguments = "self dims", .relate = relate_flip},
    {.target = "aten.roll.default",
     .arguments = "self shifts dims",
     .relate = relate_roll,
     .workspace = roll_workspace},
    {.target = "aten.tril.default", .arguments = "self diagonal", .relate = relate_triangle},
    {.target = "aten.triu.default", .arguments = "self diagonal", .relate = relate_triangle},
    {.target = "aten.max.dim", .arguments = "self dim keepdim", .outputs = 2, .relate = relate_max_dim},
    {.target = "aten.amax.default", .arguments = "self dim keepdim", .relate = relate_max_dim},
    {.target = "aten.argmax.default", .arguments = "self dim keepdim", .relate = relate_max_dim},
    {.target = "aten.min.dim", .arguments = "self dim keepdim", .outputs = 2, .relate = relate_max_dim},
    {.target = "aten.amin.default", .arguments = "self dim keepdim", .relate = relate_max_dim},
    {.target = "aten.argmin.default", .arguments = "self dim keepdim", .relate = relate_max_dim},
    {.target = "aten.max.default",
     .arguments = "self",
     .relate = relate_all,
     .workspace = first_copy_workspace},
    {.target = "aten.min.default",
     .arguments = "self",
     .relate = relate_all,
     .workspace = first_copy_workspace},
    {.target = "aten.median.default",
     .arguments = "self",
     .relate = relate_all,
     .workspace = median_workspace},
    {.target = "aten.median.dim",
     .arguments = "self dim keepdim",
     .outputs = 2,
     .relate = relate_one_of,
     .workspace = median_workspace},
    {.target = "aten.nanmedian.dim",
     .arguments = "self dim keepdim",
     .outputs = 2,
     .relate = relate_one_of,
     .workspace = median_workspace},
    {.target = "aten.mode.default", .arguments = "self dim keepdim", .outputs = 2, .relate = relate_one_of},
    {.target = "aten.kthvalue.default",
     .arguments = "self k dim keepdim",
     .outputs = 2,
     .relate = relate_kth,
     .workspace = kth_workspace},
    {.target = "aten.prod.default", .arguments = "self dtype", .relate = relate_all},
    {.target = "aten.prod.dim_int", .arguments = "self dim keepdim dtype", .relate = relate_one_of},
    {.target = "aten.any.dim", .arguments = "self dim keepdim", .relate = relate_one_of},
    {.target = "aten.all.dim", .arguments = "self dim keepdim", .relate = relate_one_of},
    {.target = "aten.logsumexp.default",
     .arguments = "self dim keepdim",
     .relate = relate_max_dim,
     .workspace = log_sum_workspace},
    {.target = "aten.var.correction", .arguments = "self dim correction keepdim", .relate = relate_variance},
    {.target = "aten.std.correction", .arguments = "self dim correction keepdim", .relate = relate_variance},
    {.target = "aten.var_mean.correction",
     .arguments = "self dim correction keepdim",
     .outputs = 2,
     .relate = relate_variance},
    {.target = "aten.linalg_vector_norm.default",
     .arguments = "self ord dim keepdim dtype",
     .relate = relate_norm},
    {.target = "aten.norm.ScalarOpt_dim", .arguments = "self p dim keepdim", .relate = relate_norm},
};

}  // namespace

std::span<const Row> whole_rows() { return kRows; }

}  // namespace partita::model
