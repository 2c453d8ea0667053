#pragma once

#include <vector>

#include "layout/layout.h"
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

/// Is a piece along `axis` in one layout the piece along it in the other? Not where the same leaf is cut
/// around it in one of them alone: [S(0.0) S(0.0)] and [R S(0.0)] cut different pieces along axis 1.
bool same_piece(const Layout& a, const Layout& b, size_t axis);

}  // namespace partita
