#include <algorithm>
#include <numeric>

#include "model/ops/common.h"
#include "model/ops/workspace.h"

namespace partita::model {
namespace {

std::vector<int64_t> reduced_dims(const OpView& op) {
  std::vector<int64_t> dims = ints_argument(*op.op, 1, "dim");
  if (dims.empty()) {
    dims.resize(op.in_rank(0));
    std::iota(dims.begin(), dims.end(), 0);
  }
  for (int64_t& dim : dims) dim = wrap_dim(dim, op.in_rank(0));
  return dims;
}

void relate_kept(const OpView& op, Relation& r, bool reducible) {
  std::vector<int64_t> dims = reduced_dims(op);
  bool keep = bool_argument(*op.op, 2, "keepdim", false);
  int64_t out = 0;
  for (int64_t d = 0; d < op.in_rank(0); ++d) {
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) {
      r.same(input_dim(0, d), output_dim(0, out++));
    } else {
      if (reducible)
        r.reduced.push_back(input_dim(0, d));
      else
        r.freeze(input_dim(0, d), "a mean divides by the whole size");
      out += keep;
    }
  }
  r.linear = {{0}};
}

void relate_sum(const OpView& op, Relation& r) { relate_kept(op, r, true); }
void relate_mean(const OpView& op, Relation& r) { relate_kept(op, r, false); }

void relate_sum_all(const OpView& op, Relation& r) {
  for (int64_t d = 0; d < op.in_rank(0); ++d) r.reduced.push_back(input_dim(0, d));
  r.linear = {{0}};
}

// count_nonzero(x): counts add up, though what is counted is not linear.
void relate_count(const OpView& op, Relation& r) {
  for (int64_t d = 0; d < op.in_rank(0); ++d) r.reduced.push_back(input_dim(0, d));
}

void relate_mean_all(const OpView& op, Relation& r) {
  for (int64_t d = 0; d < op.in_rank(0); ++d) r.freeze(input_dim(0, d), "a mean divides by the whole size");
  r.linear = {{0}};
}

constexpr Row kRows[] = {
    {.target = "aten.sum.dim_IntList",
     .arguments = "self dim keepdim dtype",
     .relate = relate_sum,
     .workspace = conversion_workspace},
    {.target = "aten.sum.default",
     .arguments = "self dtype",
     .relate = relate_sum_all,
     .workspace = conversion_workspace},
    {.target = "aten.count_nonzero.default", .arguments = "self dim", .relate = relate_count},
    {.target = "aten.mean.dim",
     .arguments = "self dim keepdim dtype",
     .relate = relate_mean,
     .workspace = mean_workspace},
    {.target = "aten.mean.default",
     .arguments = "self dtype",
     .relate = relate_mean_all,
     .workspace = mean_workspace},
};

}  // namespace

std::span<const Row> reduce_rows() { return kRows; }

}  // namespace partita::model
