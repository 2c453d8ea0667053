#pragma once

#include "reshard/tree.h"

namespace partita::reshard {

/// A tree over which one block goes from `roots` to all of `lacking`, one edge each.
struct Tree {
  std::vector<int32_t> roots, lacking;
  int64_t elements = 0;
  std::vector<Edge> edges;  // parents first
};

/// Hangs children from busy parents to others until the busiest device is as little busy as it can be; groups
/// are entered as often as before. `busy`: elements by device, those of the trees' parents among them; it is
/// kept up to date. Exact where all trees have the same number of elements, otherwise no device can give a
/// child away alone or along a path of equal trees. Stops after `max_work` looks at a device.
/// Example: trees of 1 element from {0, 1} to 2 and from {0} to 3, both by 0: the first is given to 1.
void balance(std::vector<Tree>& trees, const Levels& levels, std::vector<int64_t>& busy, int64_t max_work);

}  // namespace partita::reshard
