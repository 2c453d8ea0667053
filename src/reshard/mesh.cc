#include "reshard/mesh.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace partita::reshard {
namespace {

std::vector<int64_t> primes_of(int64_t count) {
  std::vector<int64_t> primes;
  for (int64_t p = 2; p * p <= count; ++p)
    for (; count % p == 0; count /= p) primes.push_back(p);
  if (count > 1) primes.push_back(count);
  return primes;
}

std::vector<int64_t> strides_of(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t a = sizes.size(); a-- > 1;) strides[a - 1] = strides[a] * sizes[a];
  return strides;
}

/// One piece a device, by device; empty where that does not hold.
std::vector<Piece> one_each(std::vector<Piece> pieces) {
  std::sort(pieces.begin(), pieces.end());
  for (size_t i = 1; i < pieces.size(); ++i)
    if (pieces[i].device == pieces[i - 1].device) return {};
  return pieces;
}

// Any mesh of both layouts is row-major in the order of what devices have: axes that cut dimensions, then
// those of addends, and replicas by what they want. Devices that have and want the same may change places.
void order_by_place(std::vector<Piece>& from, std::vector<Piece>& to) {
  std::vector<size_t> order(from.size());
  std::iota(order.begin(), order.end(), 0);
  auto place = [&](size_t i) {
    return std::tie(from[i].region, from[i].addend, to[i].region, to[i].addend, from[i].device);
  };
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return place(a) < place(b); });
  std::vector<Piece> sorted_from, sorted_to;
  for (size_t at : order) {
    sorted_from.push_back(std::move(from[at]));
    sorted_to.push_back(std::move(to[at]));
  }
  from = std::move(sorted_from);
  to = std::move(sorted_to);
}

/// Reads an axis off the first step along it, then checks the whole layout: a layout that only looks like one
/// there is refused at the end.
std::optional<MeshLayout> read_layout(const std::vector<Piece>& pieces, const std::vector<int64_t>& sizes,
                                      const std::vector<int64_t>& shape,
                                      const std::vector<int32_t>& devices) {
  MeshLayout layout;
  std::vector<std::vector<std::pair<int64_t, int32_t>>> cuts(shape.size());  // (step, axis)
  std::vector<std::pair<int64_t, int32_t>> addends;
  std::vector<int64_t> strides = strides_of(sizes);
  for (size_t axis = 0; axis < sizes.size(); ++axis) {
    const Piece &here = pieces[0], &next = pieces[strides[axis]];
    if (here.addend != next.addend) addends.push_back({next.addend.index - here.addend.index, int32_t(axis)});
    for (size_t d = 0; d < shape.size(); ++d)
      if (int64_t step = next.region[d].begin - here.region[d].begin) {
        cuts[d].push_back({step, int32_t(axis)});
        break;
      }
  }
  auto larger = [](const auto& a, const auto& b) { return a.first > b.first; };
  for (auto& list : cuts) {
    std::stable_sort(list.begin(), list.end(), larger);
    layout.dims.emplace_back();
    for (const auto& [step, axis] : list) layout.dims.back().push_back(axis);
  }
  std::stable_sort(addends.begin(), addends.end(), larger);
  for (const auto& [step, axis] : addends) layout.addends.push_back(axis);
  if (pieces_of(layout, sizes, shape, devices) != pieces) return std::nullopt;
  return layout;
}

}  // namespace

std::vector<Piece> pieces_of(const MeshLayout& layout, const std::vector<int64_t>& sizes,
                             const std::vector<int64_t>& shape, const std::vector<int32_t>& devices) {
  std::vector<int64_t> strides = strides_of(sizes);
  std::vector<Piece> pieces;
  for (size_t at = 0; at < devices.size(); ++at) {
    auto digit = [&](int32_t axis) { return int64_t(at) / strides[axis] % sizes[axis]; };
    Piece result{.device = devices[at]};
    for (size_t d = 0; d < shape.size(); ++d) {
      Interval side{0, shape[d]};
      for (int32_t axis : layout.dims[d]) side = piece(side, sizes[axis], digit(axis));
      result.region.push_back(side);
    }
    for (int32_t axis : layout.addends) result.addend = refine(result.addend, {digit(axis), sizes[axis]});
    pieces.push_back(std::move(result));
  }
  return pieces;
}

std::optional<Mesh> find_mesh(const Problem& problem) {
  std::vector<Piece> from = one_each(problem.from), to = one_each(problem.to);
  if (from.empty() || from.size() != to.size()) return std::nullopt;
  for (size_t i = 0; i < from.size(); ++i)
    if (from[i].device != to[i].device) return std::nullopt;
  order_by_place(from, to);
  std::vector<int32_t> devices;
  for (const Piece& piece : from) devices.push_back(piece.device);
  std::vector<int64_t> sizes = primes_of(static_cast<int64_t>(devices.size()));
  do {
    std::optional<MeshLayout> source = read_layout(from, sizes, problem.shape, devices);
    if (!source) continue;
    if (std::optional<MeshLayout> target = read_layout(to, sizes, problem.shape, devices))
      return Mesh{devices, sizes, *source, *target};
  } while (std::next_permutation(sizes.begin(), sizes.end()));
  return std::nullopt;
}

}  // namespace partita::reshard
