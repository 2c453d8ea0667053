#include "run/cut.h"

#include <utility>

#include "base/error.h"

namespace partita {

CutWalk CutWalk::reversed() const {
  CutWalk walk = *this;
  for (Extent& e : walk.extents) std::swap(e.to, e.from);
  return walk;
}

CutWalk walk_cut(const TensorType& whole, const TensorType& part, const Cut& cut, int64_t begin) {
  CHECK(whole.dtype == part.dtype);
  CHECK_EQ(whole.shape.size(), part.shape.size());
  CHECK(cut.dim >= 0 && static_cast<size_t>(cut.dim) < whole.shape.size() && cut.outer > 0 && cut.inner > 0);
  CutWalk walk;
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
    walk.first = begin * cut.inner * from;
    walk.extents.push_back({cut.outer, length * cut.inner * to, all * cut.inner * from});
    walk.extents.push_back({length, cut.inner * to, cut.inner * from});
    walk.extents.push_back({cut.inner, to, from});
  }
  return walk;
}

}  // namespace partita
