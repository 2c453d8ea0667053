// Whole slices of one dimension, picked or written by a list of indices.
#include "model/ops/common.h"
#include "model/ops/workspace.h"

namespace partita::model {
namespace {

constexpr const char* kLookup = "an index may point anywhere in it";

int64_t indexed_dim(const OpView& op) { return wrap_dim(int_argument(*op.op, 1, "dim", 0), op.in_rank(0)); }

// The dimension that is indexed stays whole in `big`; `small` has the index's own there.
void relate_slices(const OpView& op, DimRef (*big)(int64_t), DimRef (*small)(int64_t), Relation& r) {
  int64_t dim = indexed_dim(op);
  for (int64_t d = 0; d < op.in_rank(0); ++d) {
    if (d != dim) {
      r.same(big(d), small(d));
      continue;
    }
    r.freeze(big(d), kLookup);
    if (op.in_rank(1) > 0) r.same(input_dim(1, 0), small(d));
  }
}

// index_select(x, dim, index)
void relate_index_select(const OpView& op, Relation& r) {
  relate_slices(
      op, [](int64_t d) { return input_dim(0, d); }, [](int64_t d) { return output_dim(0, d); }, r);
  r.linear = {{0}};
}

// (x, dim, index, source): x with slices written.
void relate_written(const OpView& op, Relation& r) {
  relate_alike(op, 0, 0, r);
  relate_slices(
      op, [](int64_t d) { return input_dim(0, d); }, [](int64_t d) { return input_dim(2, d); }, r);
  r.linear = {{0, 2}};
}

// index_add(x, dim, index, source, alpha): sums of the slices may be made apart.
void relate_index_add(const OpView& op, Relation& r) {
  relate_written(op, r);
  if (op.in_rank(1) > 0) r.reduced.push_back(input_dim(1, 0));
  r.addends = {0};
}

// index_copy(x, dim, index, source)
void relate_index_copy(const OpView& op, Relation& r) {
  relate_written(op, r);
  if (op.in_rank(1) > 0) r.freeze(input_dim(1, 0), "the last write wins");
}

// index_fill(x, dim, index, value)
void relate_index_fill(const OpView& op, Relation& r) {
  relate_alike(op, 0, 0, r);
  if (op.in_rank(0) > 0) r.freeze(input_dim(0, indexed_dim(op)), kLookup);
  if (op.in_rank(1) > 0) r.freeze(input_dim(1, 0), "every index takes a slice out");
  bool zero = number_argument(*op.op, 3, "value", 1) == 0;
  if (op.in.size() > 2)
    r.linear = {{0, 2}};
  else if (zero)
    r.linear = {{0}};
}

// take(x, index): of all elements in order
void relate_take(const OpView& op, Relation& r) {
  for (int64_t d = 0; d < op.in_rank(0); ++d) r.freeze(input_dim(0, d), kLookup);
  relate_alike(op, 1, 0, r);
  r.linear = {{0}};
}

// put(x, index, source, accumulate)
void relate_put(const OpView& op, Relation& r) {
  bool adds = bool_argument(*op.op, 3, "accumulate", false);
  relate_alike(op, 0, 0, r);
  for (int64_t d = 0; d < op.in_rank(0); ++d) r.freeze(input_dim(0, d), kLookup);
  bool alike = op.in[1] == op.in[2];
  for (int k : {1, 2})
    for (int64_t d = 0; d < op.in_rank(k); ++d) {
      if (!adds || !alike)
        r.freeze(input_dim(k, d), adds ? "source and index count differently" : "the last write wins");
      else if (k == 1)
        r.same(input_dim(1, d), input_dim(2, d));
      if (adds && alike) r.reduced.push_back(input_dim(k, d));
    }
  if (adds) r.addends = {0};
  r.linear = {{0, 2}};
}

constexpr Row kRows[] = {
    {.target = "aten.index_select.default",
     .arguments = "self dim index",
     .relate = relate_index_select,
     .workspace = index_select_workspace},
    {.target = "aten.index_add.default",
     .arguments = "self dim index source alpha",
     .relate = relate_index_add},
    {.target = "aten.index_copy.default", .arguments = "self dim index source", .relate = relate_index_copy},
    {.target = "aten.index_fill.int_Scalar",
     .arguments = "self dim index value",
     .relate = relate_index_fill},
    {.target = "aten.index_fill.int_Tensor",
     .arguments = "self dim index value",
     .relate = relate_index_fill},
    {.target = "aten.take.default", .arguments = "self index", .relate = relate_take},
    {.target = "aten.put.default", .arguments = "self index source accumulate", .relate = relate_put},
};

}  // namespace

std::span<const Row> select_rows() { return kRows; }

}  // namespace partita::model
