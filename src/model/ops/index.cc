#include <algorithm>

#include "model/ops/common.h"

namespace partita::model {
namespace {

constexpr const char* kLookup = "an index may point anywhere in it";

/// How index and index_put see their operand: which dimensions are indexed, and where the dimensions of the
/// broadcast indices stand in the result (of index) or in the values (of index_put).
struct Indexing {
  std::vector<int> dims;          // indexed dimensions, in order; index i is input 1 + i
  std::vector<int64_t> position;  // per dimension of the operand: its place in the result, -1 where indexed
  int64_t rank = 0;               // of the broadcast indices
  int64_t first = 0;              // their place in the result
  bool masked = false;            // an index of truth values: the size of the result depends on them
};

Indexing indexing_of(const OpView& op) {
  Indexing out;
  const std::vector<Arg>& items = argument(*op.op, 1, "indices").items;
  for (size_t d = 0; d < items.size(); ++d)
    if (items[d].kind == Arg::kTensor) out.dims.push_back(static_cast<int>(d));
  for (size_t i = 0; i < out.dims.size(); ++i) {
    out.rank = std::max<int64_t>(out.rank, op.in_rank(1 + static_cast<int>(i)));
    DType dtype = op.in_dtypes[1 + i];
    out.masked |= dtype == DType::kBool || dtype == DType::kUInt8;
  }
  need(out.dims.empty() || out.dims.back() < op.in_rank(0), "{} dimensions are indexed, it has {}",
       items.size(), op.in_rank(0));
  // Indices that do not stand side by side put their dimensions first.
  bool adjacent =
      !out.dims.empty() && out.dims.back() - out.dims.front() + 1 == static_cast<int>(out.dims.size());
  out.first = adjacent ? out.dims.front() : 0;
  int64_t at = adjacent ? 0 : out.rank;
  for (int d = 0; d < op.in_rank(0); ++d) {
    bool indexed = std::find(out.dims.begin(), out.dims.end(), d) != out.dims.end();
    out.position.push_back(indexed ? -1 : at);
    if (!indexed) ++at;
    if (adjacent && d == out.dims.front()) at += out.rank;
  }
  return out;
}

void freeze_everything(const OpView& op, Relation& r) {
  for (size_t k = 0; k < op.in.size(); ++k)
    for (int64_t d = 0; d < op.in_rank(static_cast<int>(k)); ++d)
      r.freeze(input_dim(static_cast<int>(k), d), "the mask decides the size of the result");
  for (int64_t d = 0; d < op.out_rank(0); ++d)
    r.freeze(output_dim(0, d), "the mask decides the size of the result");
}

// The dimension of the result or the values that dimension d of index i is broadcast to; negative where they
// lack it.
int64_t target_of(const OpView& op, const Indexing& x, size_t i, int64_t d, int64_t lacking) {
  return x.first + x.rank - op.in_rank(1 + static_cast<int>(i)) + d - lacking;
}

// index(x, indices)
void relate_index(const OpView& op, Relation& r) {
  Indexing x = indexing_of(op);
  if (x.masked) return freeze_everything(op, r);
  for (int64_t d = 0; d < op.in_rank(0); ++d) {
    if (x.position[d] < 0)
      r.freeze(input_dim(0, d), kLookup);
    else
      r.same(input_dim(0, d), output_dim(0, x.position[d]));
  }
  for (size_t i = 0; i < x.dims.size(); ++i)
    for (int64_t d = 0; d < op.in_rank(1 + static_cast<int>(i)); ++d) {
      int64_t to = target_of(op, x, i, d, 0);
      if (op.in[1 + i][d] == op.out[0][to]) r.same(input_dim(1 + static_cast<int>(i), d), output_dim(0, to));
    }
  r.linear = {{0}};
}

// Each index dimension is a loop over writes: with accumulate their sums may be made apart, else the last
// write wins.
void relate_writes(const OpView& op, const Indexing& x, int values, int64_t lacking, bool accumulate,
                   Relation& r) {
  std::vector<DimRef> first(static_cast<size_t>(x.rank), factor(-1, 0));
  for (size_t i = 0; i < x.dims.size(); ++i) {
    int k = 1 + static_cast<int>(i);
    for (int64_t d = 0; d < op.in_rank(k); ++d) {
      DimRef ref = input_dim(k, d);
      if (accumulate)
        r.reduced.push_back(ref);
      else
        r.freeze(ref, "the last write wins");
      if (op.in[k][d] == 1) continue;
      DimRef& known = first[x.rank - op.in_rank(k) + d];
      if (known.operand >= 0) r.same(known, ref);
      known = ref;
      int64_t to = target_of(op, x, i, d, lacking);
      if (to >= 0 && op.in[values][to] == op.in[k][d]) r.same(ref, input_dim(values, to));
    }
  }
}

// index_put(x, indices, values, accumulate)
void relate_index_put(const OpView& op, Relation& r) {
  Indexing x = indexing_of(op);
  if (x.masked) return freeze_everything(op, r);
  int values = 1 + static_cast<int>(x.dims.size());
  int64_t full = op.in_rank(0) - static_cast<int64_t>(x.dims.size()) + x.rank;
  int64_t lacking = full - op.in_rank(values);  // leading dimensions the values leave to broadcasting
  bool accumulate = bool_argument(*op.op, 3, "accumulate", false);
  for (int64_t d = 0; d < op.in_rank(0); ++d) {
    r.same(input_dim(0, d), output_dim(0, d));
    int64_t to = x.position[d] - lacking;
    if (x.position[d] < 0)
      r.freeze(input_dim(0, d), kLookup);
    else if (to >= 0 && op.in[values][to] == op.in[0][d])
      r.same(input_dim(0, d), input_dim(values, to));
  }
  relate_writes(op, x, values, lacking, accumulate, r);
  if (accumulate) r.addends = {0};
  r.linear = {{0, values}};
}

// gather(x, dim, index): "index" and the result have one shape.
void relate_gather(const OpView& op, Relation& r) {
  int64_t dim = wrap_dim(int_argument(*op.op, 1, "dim", 0), op.in_rank(0));
  for (int64_t d = 0; d < op.in_rank(0); ++d) {
    r.same(input_dim(1, d), output_dim(0, d));
    if (d == dim) {
      r.freeze(input_dim(0, d), kLookup);
    } else if (op.in[0][d] == op.in[1][d]) {
      r.same(input_dim(0, d), output_dim(0, d));
    } else {
      for (DimRef ref : {input_dim(0, d), input_dim(1, d)})
        r.freeze(ref, "only a part of the dimension is read");
    }
  }
  r.linear = {{0}};
}

constexpr Row kRows[] = {
    {.target = "aten.index.Tensor", .arguments = "self indices", .relate = relate_index},
    {.target = "aten._unsafe_index.Tensor", .arguments = "self indices", .relate = relate_index},
    {.target = "aten.index_put.default",
     .arguments = "self indices values accumulate",
     .relate = relate_index_put},
    {.target = "aten._unsafe_index_put.default",
     .arguments = "self indices values accumulate",
     .relate = relate_index_put},
    {.target = "aten.gather.default", .arguments = "self dim index sparse_grad", .relate = relate_gather},
};

}  // namespace

std::span<const Row> index_rows() { return kRows; }

}  // namespace partita::model
