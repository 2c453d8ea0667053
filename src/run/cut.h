#pragma once

#include <vector>

#include "program/program.h"
#include "run/strided.h"

namespace partita {

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

}  // namespace partita
