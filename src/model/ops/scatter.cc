// Ops that write a smaller tensor into a bigger one.
#include "model/ops/common.h"
#include "model/ops/slice_arguments.h"
#include "model/ops/workspace.h"

namespace partita::model {
namespace {

constexpr const char* kAnywhere = "an index may point anywhere in it";

// x and the result have one shape, index and source another; dimensions they share in full are one letter. A
// source longer than the index is read only in part.
void relate_scatter_of(const OpView& op, bool adds, Relation& r) {
  int64_t dim = wrap_dim(int_argument(*op.op, 1, "dim", 0), op.in_rank(0));
  bool source = op.in.size() > 2;
  for (int64_t d = 0; d < op.in_rank(0); ++d) {
    r.same(input_dim(0, d), output_dim(0, d));
    bool whole = op.in[0][d] == op.in[1][d];
    if (d == dim)
      r.freeze(input_dim(0, d), kAnywhere);
    else if (whole)
      r.same(input_dim(0, d), input_dim(1, d));
    else
      r.freeze(input_dim(0, d), "only a part of the dimension is written");
    bool writes = d == dim && adds;
    if (writes)
      r.reduced.push_back(input_dim(1, d));
    else if (d == dim || !whole)
      r.freeze(input_dim(1, d), "the last write wins");
    if (!source) continue;
    if (op.in[2][d] == op.in[1][d])
      r.same(input_dim(1, d), input_dim(2, d));
    else
      for (int k : {1, 2}) r.freeze(input_dim(k, d), "only a part of the source is read");
  }
}

void relate_scatter(const OpView& op, Relation& r) {
  relate_scatter_of(op, false, r);
  if (op.in.size() > 2) r.linear = {{0, 2}};
}

void relate_scatter_add(const OpView& op, Relation& r) {
  relate_scatter_of(op, true, r);
  r.addends = {0};
  r.linear = {{0, 2}};
}

// scatter_reduce(x, dim, index, source, reduce, include_self). A sum that keeps what x has is scatter_add.
void relate_scatter_reduce(const OpView& op, Relation& r) {
  const std::string& reduce = argument(*op.op, 4, "reduce").text;
  bool keeps = bool_argument(*op.op, 5, "include_self", true);
  if (reduce == "sum" && keeps) return relate_scatter_add(op, r);
  relate_scatter_of(op, false, r);
  if (reduce == "sum" || reduce == "mean") r.linear = {{0, 2}};
}

// scatter(x, dim, index, source, reduce)
void relate_scatter_with(const OpView& op, Relation& r) {
  if (argument(*op.op, 4, "reduce").text == "add") return relate_scatter_add(op, r);
  relate_scatter_of(op, false, r);
}

// select_scatter(x, source, dim, index)
void relate_select_scatter(const OpView& op, Relation& r) {
  int64_t dim = wrap_dim(int_argument(*op.op, 2, "dim", 0), op.in_rank(0));
  for (int64_t d = 0; d < op.in_rank(0); ++d) {
    r.same(input_dim(0, d), output_dim(0, d));
    if (d == dim)
      r.freeze(input_dim(0, d), "one element is replaced");
    else
      r.same(input_dim(1, d - (d > dim)), output_dim(0, d));
  }
  r.linear = {{0, 1}};
}

// slice_scatter(x, source, dim, start, end, step)
void relate_slice_scatter(const OpView& op, Relation& r) {
  relate_alike(op, 0, 0, r);
  SliceArguments s = slice_arguments(*op.op, op.in[0], 2);
  for (int64_t d = 0; d < op.in_rank(0); ++d) {
    if (d != s.dim)
      r.same(input_dim(1, d), output_dim(0, d));
    else
      relate_slice_dim(s, output_dim(0, d), input_dim(1, d), op.in[0][d], op.in[1][d], r);
  }
  r.linear = {{0, 1}};
}

void localize_slice_scatter(const OpView& whole, const OpView& local, Op& op) {
  localize_slice(slice_arguments(*whole.op, whole.in[0], 2), whole.in[0], local.in[0], local.in[1], 2, op);
}

constexpr Row kRows[] = {
    {.target = "aten.scatter.src", .arguments = "self dim index src", .relate = relate_scatter},
    {.target = "aten.scatter.value", .arguments = "self dim index value", .relate = relate_scatter},
    {.target = "aten.scatter_add.default", .arguments = "self dim index src", .relate = relate_scatter_add},
    {.target = "aten.scatter.reduce",
     .arguments = "self dim index src reduce",
     .relate = relate_scatter_with},
    {.target = "aten.scatter_reduce.two",
     .arguments = "self dim index src reduce include_self",
     .relate = relate_scatter_reduce,
     .workspace = scatter_mean_workspace},
    {.target = "aten.select_scatter.default",
     .arguments = "self src dim index",
     .relate = relate_select_scatter,
     .copies_storage = true},
    {.target = "aten.slice_scatter.default",
     .arguments = "self src dim start end step",
     .relate = relate_slice_scatter,
     .localize = localize_slice_scatter,
     .copies_storage = true},
};

}  // namespace

std::span<const Row> scatter_rows() { return kRows; }

}  // namespace partita::model
