#pragma once

#include <vector>

#include "run/communicator.h"

namespace partita::run {

/// The walk from a whole to a part of it: [begin, begin + length of `part`) of `whole` along `cut`.
/// Example: heads [1, 3) of a [n, 3*4*32]: cut {dim 1, outer 3, inner 32}, begin 1, part [n, 3*2*32].
/// REQUIRES: the other dimensions agree and the part lies inside.
Walk walk_cut(const TensorType& whole, const TensorType& part, const Cut& cut, int64_t begin);

/// The walk from what member `from` of an all-to-all brings to what member `to` keeps of it. Example: of rows
/// {3, 2} that become columns {2, 2} member 1 gives member 0 its [2, 2] at column 0, which goes to row 3 of
/// the [5, 2] there. REQUIRES: `in` and `out` are what the two cuts make of one whole.
Walk walk_share(const TensorType& in, const TensorType& out, const Pieces& joined, const Pieces& scattered,
                size_t from, size_t to);

}  // namespace partita::run
