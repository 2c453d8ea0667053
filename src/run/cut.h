#pragma once

#include <vector>

#include "program/program.h"
#include "run/communicator.h"
#include "run/strided.h"

namespace partita::run {

/// A walk between a part and the whole it belongs to; to = part, from = whole.
struct CutWalk {
  int64_t first = 0;  // element of the whole where the part begins
  std::vector<Extent> extents;

  CutWalk reversed() const;  // to = whole, from = part; `first` still counts in the whole
};

/// [begin, begin + length of `part`) of `whole` along `cut`.
/// Example: heads [1, 3) of a [n, 3*4*32]: cut {dim 1, outer 3, inner 32}, begin 1, part [n, 3*2*32].
/// REQUIRES: the other dimensions agree and the part lies inside.
CutWalk walk_cut(const TensorType& whole, const TensorType& part, const Cut& cut, int64_t begin);

/// A walk between what one member of an all-to-all brings and what another keeps of it; to = the latter.
struct ShareWalk {
  int64_t from = 0, to = 0;  // elements where it begins
  std::vector<Extent> extents;
};

/// The share of member `to` of what member `from` brings. Example: of rows {3, 2} that become columns {2, 2}
/// member 1 gives member 0 its [2, 2] at column 0, which goes to row 3 of the [5, 2] there.
/// REQUIRES: `in` and `out` are what the two cuts make of one whole.
ShareWalk walk_share(const TensorType& in, const TensorType& out, const Pieces& joined,
                     const Pieces& scattered, size_t from, size_t to);

}  // namespace partita::run
