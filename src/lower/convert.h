#pragma once

#include <vector>

#include "layout/same_piece.h"
#include "program/program.h"

namespace partita::lower {

/// One step from a layout to another on the same devices.
struct Conversion {
  InstrKind kind = InstrKind::kAllReduce;  // kReduceScatter, kAllGather, kAllToAll, kSlice, kMove (keep one
                                           // partial)
  std::vector<int> axes;                   // of the group, ascending
  int dim = -1, leaf = -1;                 // kAllToAll: of what is joined; `result` says what is sharded
  Layout result;
};

/// Steps that turn `from` into `to`, each right for uneven shards: sums first (scattered where the target is
/// sharded, inner axes before outer ones), then gathers (outer axes before inner ones), then slices from the
/// outermost inwards, then zero-filled partials; outer cuts of a leaf are made first and undone last. A
/// gather and the slice that would follow it on its axis are one all-to-all. Example: [P S(0.0)] -> [R
/// S(0.0)] is one all-reduce over axis 0; [S(0.0)] -> [S(1.0)] one all-to-all.
std::vector<Conversion> plan_conversion(const Layout& from, const Layout& to);

}  // namespace partita::lower
