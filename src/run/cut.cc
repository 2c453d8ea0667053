#include "run/cut.h"

#include <numeric>
#include <utility>

#include "base/error.h"

namespace partita::run {

Walk walk_cut(const TensorType& whole, const TensorType& part, const Cut& cut, int64_t begin) {
  CHECK(whole.dtype == part.dtype);
  CHECK_EQ(whole.shape.size(), part.shape.size());
  CHECK(cut.dim >= 0 && static_cast<size_t>(cut.dim) < whole.shape.size() && cut.outer > 0 && cut.inner > 0);
  Walk walk;
  for (int32_t d = 0; d < static_cast<int32_t>(whole.shape.size()); ++d) {
    int64_t to = part.strides[d], from = whole.strides[d];
    if (d != cut.dim) {
      CHECK_EQ(whole.shape[d], part.shape[d]);
      walk.extents.push_back({part.shape[d], to, from});
      continue;
    }
    int64_t step = cut.outer * cut.inner;
    CHECK_EQ(whole.shape[d] % step, 0);
    CHECK_EQ(part.shape[d] % step, 0);
    int64_t all = whole.shape[d] / step, length = part.shape[d] / step;
    CHECK(begin >= 0 && begin + length <= all);
    walk.from = begin * cut.inner * from;
    walk.extents.push_back({cut.outer, length * cut.inner * to, all * cut.inner * from});
    walk.extents.push_back({length, cut.inner * to, cut.inner * from});
    walk.extents.push_back({cut.inner, to, from});
  }
  return walk;
}

namespace {

/// A factor of a dimension: how much of it is walked, its size on either side, and where the walk begins.
struct Factor {
  int64_t count, in, out;
  int64_t in_begin = 0, out_begin = 0;
};

int64_t before(const Pieces& pieces, size_t count) {
  return std::accumulate(pieces.lengths.begin(), pieces.lengths.begin() + static_cast<ptrdiff_t>(count),
                         int64_t{0});
}
int64_t total(const Pieces& pieces) { return before(pieces, pieces.lengths.size()); }

Factor same(int64_t size) { return {size, size, size}; }

/// The factors of dimension `dim`, outermost first.
std::vector<Factor> factors_of(int32_t dim, int64_t size, const Cut& join, const Factor& brought,
                               const Cut& scatter, const Factor& kept) {
  if (dim != join.dim && dim != scatter.dim) return {same(size)};
  if (dim != scatter.dim) return {same(join.outer), brought, same(join.inner)};
  if (dim != join.dim) return {same(scatter.outer), kept, same(scatter.inner)};
  bool first = join.leaf < scatter.leaf;
  const Cut &outer = first ? join : scatter, &inner = first ? scatter : join;
  int64_t inside = inner.inner * (first ? kept.in : brought.out);  // in the whole
  Factor between = same(inside ? outer.inner / inside : 1);
  return {same(outer.outer), first ? brought : kept, between, first ? kept : brought, same(inner.inner)};
}

}  // namespace

Walk walk_share(const TensorType& in, const TensorType& out, const Pieces& joined, const Pieces& scattered,
                size_t from, size_t to) {
  CHECK(in.dtype == out.dtype);
  CHECK_EQ(in.shape.size(), out.shape.size());
  int64_t piece = joined.lengths[from], share = scattered.lengths[to];
  Factor brought{piece, piece, total(joined), 0, before(joined, from)};
  Factor kept{share, total(scattered), share, before(scattered, to), 0};
  Walk walk;
  for (int32_t d = 0; d < static_cast<int32_t>(in.shape.size()); ++d) {
    std::vector<Factor> factors = factors_of(d, in.shape[d], joined.cut, brought, scattered.cut, kept);
    int64_t in_size = 1, out_size = 1;
    for (auto factor = factors.rbegin(); factor != factors.rend(); ++factor) {
      int64_t to_stride = out_size * out.strides[d], from_stride = in_size * in.strides[d];
      walk.to += factor->out_begin * to_stride;
      walk.from += factor->in_begin * from_stride;
      walk.extents.push_back({factor->count, to_stride, from_stride});
      in_size *= factor->in, out_size *= factor->out;
    }
    CHECK_EQ(in_size, in.shape[d]);
    CHECK_EQ(out_size, out.shape[d]);
  }
  return walk;
}

}  // namespace partita::run
