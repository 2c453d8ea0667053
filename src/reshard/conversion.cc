#include "reshard/conversion.h"

#include <algorithm>
#include <optional>

#include "base/error.h"

namespace partita::reshard {
namespace {

/// A tensor without leaves is one element.
Region flat(const Box& box) {
  Region region;
  for (const auto& leaves : box) region.insert(region.end(), leaves.begin(), leaves.end());
  if (region.empty()) region.push_back({0, 1});
  return region;
}

std::vector<int64_t> coordinates_of(int64_t index, const MeshTensor& tensor) {
  std::vector<int64_t> coordinates(tensor.axis_sizes.size());
  coordinates.back() = tensor.microbatch;
  for (size_t axis = coordinates.size() - 1; axis-- > 0;) {
    coordinates[axis] = index % tensor.axis_sizes[axis];
    index /= tensor.axis_sizes[axis];
  }
  return coordinates;
}

std::vector<Piece> pieces_of(const MeshTensor& tensor, const Layout& layout, const Region& origin) {
  std::vector<Piece> pieces;
  for (size_t at = 0; at < tensor.devices.size(); ++at) {
    std::vector<int64_t> coordinates = coordinates_of(static_cast<int64_t>(at), tensor);
    Piece piece{tensor.devices[at], flat(box_of(tensor.whole, layout, tensor.axis_sizes, coordinates)), {}};
    for (size_t axis = 0; axis + 1 < layout.size(); ++axis)
      if (layout[axis].kind == AxisLayout::kPartial)
        piece.addend = refine(piece.addend, {coordinates[axis], tensor.axis_sizes[axis]});
    for (size_t d = 0; d < piece.region.size(); ++d) {
      piece.region[d].begin -= origin[d].begin;
      piece.region[d].end -= origin[d].begin;
    }
    if (volume(piece.region) > 0) pieces.push_back(std::move(piece));
  }
  return pieces;
}

/// The reducer of the space axes; time is over before anything moves.
Reducer reducer_of(const Layout& from, const Layout& to) {
  std::optional<Reducer> only;
  for (const Layout* layout : {&from, &to})
    for (size_t axis = 0; axis + 1 < layout->size(); ++axis) {
      const AxisLayout& along = (*layout)[axis];
      if (along.kind != AxisLayout::kPartial) continue;
      CHECK(!only || *only == along.reducer);
      only = along.reducer;
    }
  return only.value_or(Reducer::kSum);
}

}  // namespace

std::vector<LeafRef> leaves_of(const Box& whole) {
  std::vector<LeafRef> leaves;
  for (size_t dim = 0; dim < whole.size(); ++dim)
    for (size_t leaf = 0; leaf < whole[dim].size(); ++leaf)
      leaves.push_back({static_cast<int32_t>(dim), static_cast<int32_t>(leaf)});
  return leaves;
}

Problem conversion(const MeshTensor& tensor, const Layout& from, const Layout& to) {
  CHECK(!tensor.axis_sizes.empty());
  CHECK(from.size() == tensor.axis_sizes.size() && to.size() == from.size() && from.back() == to.back());
  Region origin = flat(tensor.whole);
  Problem problem{.elem_bytes = tensor.elem_bytes};
  for (const Interval& side : origin) problem.shape.push_back(side.length());
  problem.reducer = reducer_of(from, to);
  problem.from = pieces_of(tensor, from, origin);
  problem.to = pieces_of(tensor, to, origin);
  return problem;
}

std::pair<int64_t, int64_t> around_leaf(const std::vector<LeafRef>& leaves, const Region& buffer, int d) {
  std::pair<int64_t, int64_t> sizes{1, 1};
  for (size_t other = 0; other < leaves.size(); ++other) {
    if (leaves[other].dim != leaves[d].dim) continue;
    if (leaves[other].leaf < leaves[d].leaf) sizes.first *= buffer[other].length();
    if (leaves[other].leaf > leaves[d].leaf) sizes.second *= buffer[other].length();
  }
  return sizes;
}

}  // namespace partita::reshard
