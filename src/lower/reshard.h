#pragma once

#include <vector>

#include "layout/same_piece.h"
#include "program/program.h"

namespace partita {

/// One step from a layout to another on the same devices.
struct Conversion {
  InstrKind kind =
      InstrKind::kAllReduce;  // kAllReduce, kReduceScatter, kAllGather, kSlice, kMove (keep one addend)
  std::vector<int> axes;      // of the group, ascending
  int dim = -1, leaf = -1;
  Layout result;
};

/// Steps that turn `from` into `to`, each right for uneven pieces: sums first (scattered where the target is
/// cut), then gathers from the innermost cut outwards, then slices from the outermost inwards, then
/// zero-filled addends. Example: [P S(0.0)] -> [R S(0.0)] is one all-reduce over axis 0.
std::vector<Conversion> plan_conversion(const Layout& from, const Layout& to);

}  // namespace partita
