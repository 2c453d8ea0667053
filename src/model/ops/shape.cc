#include <numeric>

#include "model/ops/common.h"

namespace partita {
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

void relate_order(const OpView& op, const std::vector<int64_t>& order, Relation& r) {
  for (size_t d = 0; d < order.size(); ++d)
    r.same(input_dim(0, wrap_dim(order[d], op.in_rank(0))), output_dim(0, static_cast<int64_t>(d)));
  r.linear = {{0}};
}

void relate_permute(const OpView& op, Relation& r) { relate_order(op, ints_argument(*op.op, 1, "dims"), r); }

void relate_transpose(const OpView& op, Relation& r) {
  std::vector<int64_t> order(op.in_rank(0));
  std::iota(order.begin(), order.end(), 0);
  int64_t a = wrap_dim(int_argument(*op.op, 1, "dim0", 0), op.in_rank(0));
  int64_t b = wrap_dim(int_argument(*op.op, 2, "dim1", 1), op.in_rank(0));
  std::swap(order[a], order[b]);
  relate_order(op, order, r);
}

void relate_t(const OpView& op, Relation& r) {
  if (op.in_rank(0) == 2) relate_order(op, {1, 0}, r);
  else relate_reshape(op, r);
}

// A dimension grown from 1 is new: every rank may expand to its own part of it.
void relate_expand(const OpView& op, Relation& r) {
  relate_broadcast(op, r);
  r.linear = {{0}};
}

void localize_sizes(const OpView&, const OpView& local, Op& op) { set_argument(op, 1, "size", Arg::list(local.out[0])); }

constexpr Row kRows[] = {
    {.target = "aten.view.default", .relate = relate_reshape, .localize = localize_sizes, .view = true},
    {.target = "aten.unsqueeze.default", .relate = relate_reshape, .view = true},
    {.target = "aten.squeeze.dim", .relate = relate_reshape, .view = true},
    {.target = "aten.squeeze.dims", .relate = relate_reshape, .view = true},
    {.target = "aten.squeeze.default", .relate = relate_reshape, .view = true},
    {.target = "aten.t.default", .relate = relate_t, .view = true},
    {.target = "aten.transpose.int", .relate = relate_transpose, .view = true},
    {.target = "aten.permute.default", .relate = relate_permute, .view = true},
    {.target = "aten.expand.default", .relate = relate_expand, .localize = localize_sizes, .view = true},
};

}  // namespace

std::span<const Row> shape_rows() { return kRows; }

}  // namespace partita
