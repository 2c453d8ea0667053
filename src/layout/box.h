#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/namespaces.h"

namespace partita::layout {

/// [begin, end).
struct Interval {
  int64_t begin = 0, end = 0;
  int64_t length() const { return end - begin; }
  auto operator<=>(const Interval&) const = default;
};

/// Piece `index` of `interval` cut into `parts`: the first (length mod parts) pieces get one more.
/// Example: piece({0, 4}, 3, 0) == {0, 2}; piece({0, 4}, 3, 2) == {3, 4}.
Interval piece(Interval whole, int64_t parts, int64_t index);

/// A part of a tensor: for every dimension, an interval for every leaf (atom) of that dimension, outermost
/// first. A dimension of size 1 has no leaves. Example: two of the four heads of a fused qkv weight [128,
/// 3*4*32] are
/// {{[0,128)}, {[0,3), [1,3), [0,32)}}: strided in the whole tensor, dense on its rank.
using Box = std::vector<std::vector<Interval>>;

int64_t numel(const Box& box);
/// Local sizes: per dimension the product of the lengths of its leaves.
std::vector<int64_t> shape_of(const Box& box);
std::string to_text(const Box& box);

}  // namespace partita::layout
