#include <algorithm>
#include <numeric>

#include "model/ops/common.h"
#include "model/ops/workspace.h"

namespace partita::model {
namespace {

DimProduct all_inputs(const OpView& op) {
  DimProduct dims;
  for (int d = 0; d < op.in_rank(0); ++d) dims.push_back(input_dim(0, d));
  return dims;
}

DimProduct all_outputs(const OpView& op) {
  DimProduct dims;
  for (int d = 0; d < op.out_rank(0); ++d) dims.push_back(output_dim(0, d));
  return dims;
}

// view, unsqueeze, squeeze: the same elements in the same order, so the products of all dimensions are equal.
void relate_reshape(const OpView& op, Relation& r) {
  r.equal.push_back({all_inputs(op), all_outputs(op)});
  r.linear = {{0}};
}

void relate_view(const OpView& op, Relation& r) {
  need_sizes(*op.op, 1, "size", op.out[0]);
  relate_reshape(op, r);
}

// squeeze takes out what has size 1: a piece of length 1 would vanish with it.
void relate_squeeze(const OpView& op, Relation& r) {
  relate_reshape(op, r);
  bool all = op.op->target == "aten.squeeze.default";
  std::vector<int64_t> dims = ints_argument(*op.op, 1, "dim");
  for (int64_t& dim : dims) dim = wrap_dim(dim, op.in_rank(0));
  for (int64_t d = 0; d < op.in_rank(0); ++d)
    if (op.in[0][d] != 1 && (all || std::find(dims.begin(), dims.end(), d) != dims.end()))
      r.freeze(input_dim(0, d), "a piece of length 1 would be squeezed out");
}

void relate_order(const OpView& op, const std::vector<int64_t>& order, Relation& r) {
  std::vector<int64_t> sorted = order;
  for (int64_t& dim : sorted) dim = wrap_dim(dim, op.in_rank(0));
  std::sort(sorted.begin(), sorted.end());
  bool once = std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
  need(once && static_cast<int>(order.size()) == op.in_rank(0), "[{}] is not an order of {} dimensions",
       fmt::join(order, ","), op.in_rank(0));
  for (size_t d = 0; d < order.size(); ++d)
    r.same(input_dim(0, wrap_dim(order[d], op.in_rank(0))), output_dim(0, static_cast<int64_t>(d)));
  r.linear = {{0}};
}

void relate_permute(const OpView& op, Relation& r) { relate_order(op, ints_argument(*op.op, 1, "dims"), r); }

void relate_transpose(const OpView& op, Relation& r) {
  if (op.in_rank(0) == 0) return relate_reshape(op, r);
  std::vector<int64_t> order(op.in_rank(0));
  std::iota(order.begin(), order.end(), 0);
  int64_t a = wrap_dim(int_argument(*op.op, 1, "dim0", 0), op.in_rank(0));
  int64_t b = wrap_dim(int_argument(*op.op, 2, "dim1", 1), op.in_rank(0));
  std::swap(order[a], order[b]);
  relate_order(op, order, r);
}

void relate_t(const OpView& op, Relation& r) {
  if (op.in_rank(0) == 2)
    relate_order(op, {1, 0}, r);
  else
    relate_reshape(op, r);
}

// A dimension grown from 1 is new: every rank may expand to its own part of it.
void relate_expand(const OpView& op, Relation& r) {
  need_sizes(*op.op, 1, "size", op.out[0]);
  relate_expanded(op, r);
  r.linear = {{0}};
}

void localize_sizes(const OpView&, const OpView& local, Op& op) {
  set_argument(op, 1, "size", Arg::list(local.out[0]));
}

// repeat(x, repeats): a repeated dimension is (times, x's own).
void relate_repeat(const OpView& op, Relation& r) {
  int offset = op.out_rank(0) - op.in_rank(0), used = 0;
  need(offset >= 0, "the result has fewer dimensions than what is repeated");
  for (int64_t d = 0; d < op.in_rank(0); ++d) {
    int64_t times = op.in[0][d] == 0 ? 1 : op.out[0][d + offset] / op.in[0][d];
    if (times == 1)
      r.same(input_dim(0, d), output_dim(0, d + offset));
    else
      r.equal.push_back({{output_dim(0, d + offset)}, {factor(used++, times), input_dim(0, d)}});
  }
  r.linear = {{0}};
}

void localize_repeat(const OpView&, const OpView& local, Op& op) {
  std::vector<int64_t> repeats = local.out[0];
  size_t offset = local.out[0].size() - local.in[0].size();
  for (size_t d = 0; d < local.in[0].size(); ++d)
    if (local.in[0][d] != 0) repeats[d + offset] /= local.in[0][d];
  set_argument(op, 1, "repeats", Arg::list(repeats));
}

constexpr Row kRows[] = {
    {.target = "aten.view.default",
     .arguments = "self size",
     .relate = relate_view,
     .localize = localize_sizes,
     .view = true},
    {.target = "aten.unsqueeze.default", .arguments = "self dim", .relate = relate_reshape, .view = true},
    {.target = "aten.squeeze.dim", .arguments = "self dim", .relate = relate_squeeze, .view = true},
    {.target = "aten.squeeze.dims", .arguments = "self dim", .relate = relate_squeeze, .view = true},
    {.target = "aten.squeeze.default", .arguments = "self", .relate = relate_squeeze, .view = true},
    {.target = "aten.t.default", .arguments = "self", .relate = relate_t, .view = true},
    {.target = "aten.transpose.int", .arguments = "self dim0 dim1", .relate = relate_transpose, .view = true},
    {.target = "aten.permute.default", .arguments = "self dims", .relate = relate_permute, .view = true},
    {.target = "aten.expand.default",
     .arguments = "self size implicit",
     .relate = relate_expand,
     .localize = localize_sizes,
     .view = true},
    {.target = "aten.repeat.default",
     .arguments = "self repeats",
     .relate = relate_repeat,
     .localize = localize_repeat,
     .workspace = repeat_workspace},
};

}  // namespace

std::span<const Row> shape_rows() { return kRows; }

}  // namespace partita::model
