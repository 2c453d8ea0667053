#include "search/mesh_costs.h"

#include <algorithm>

namespace partita {

MeshCosts::MeshCosts(const Prices& prices, std::vector<int64_t> axis_sizes)
    : prices_(prices), axis_sizes_(std::move(axis_sizes)) {
  int64_t stride = 1;
  ranks_.resize(axis_sizes_.size());
  for (size_t axis = axis_sizes_.size(); axis-- > 0;) {
    for (int64_t i = 0; i < axis_sizes_[axis]; ++i) ranks_[axis].push_back(static_cast<int32_t>(i * stride));
    stride *= axis_sizes_[axis];
  }
}

Seconds MeshCosts::collective(const char* kind, Bytes bytes, size_t axis) {
  auto [at, added] = known_.try_emplace({kind, bytes, axis}, 0.0);
  if (added) at->second = prices_.collective(kind, bytes, ranks_[axis]);
  return at->second;
}

Seconds MeshCosts::step(const Box& whole, Bytes element, const Layout& now, size_t axis,
                        const AxisLayout& to) {
  const AxisLayout& from = now[axis];
  using enum AxisLayout::Kind;
  if (from == to || from.kind == kReplicated) return 0;
  // A piece among zeros is an addend.
  if (from.kind == kShard && to.kind == kPartial) return 0;
  // All that the ranks of this axis hold together: what the other axes leave of the tensor.
  Layout together = now;
  together[axis] = {};
  Bytes bytes =
      element * numel(box_of(whole, together, axis_sizes_, std::vector<int64_t>(axis_sizes_.size(), 0)));
  if (from.kind == kPartial)
    return collective(to.kind == kShard ? "reduce_scatter" : "all_reduce", bytes, axis);
  if (to.kind == kReplicated) return collective("all_gather", bytes, axis);
  // Every rank sends each other one its share of the own piece: as many messages as a ring has, each smaller
  // by the number of ranks.
  return collective("all_gather", bytes / axis_sizes_[axis], axis);
}

Seconds MeshCosts::convert(const Box& whole, Bytes element, const Layout& from, const Layout& to) {
  std::vector<size_t> axes;
  for (size_t axis = 0; axis < from.size(); ++axis)
    if (from[axis] != to[axis]) axes.push_back(axis);
  Seconds best = -1;
  do {
    Seconds sum = 0;
    Layout now = from;
    for (size_t axis : axes) {
      sum += step(whole, element, now, axis, to[axis]);
      now[axis] = to[axis];
    }
    if (best < 0 || sum < best) best = sum;
  } while (std::next_permutation(axes.begin(), axes.end()));
  return best;
}

}  // namespace partita
