#pragma once

#include <cstdint>
#include <vector>

namespace partita::reshard {

struct Edge {
  int32_t parent = 0, child = 0;
  int32_t depth = 1;  // of the child; roots have 0
};

/// How busy parents are: elements by device, what one more child adds, and how much costs nothing.
struct TreeLoad {
  const std::vector<int64_t>& busy;
  int64_t elements = 0, floor = 0;
  const std::vector<int32_t>& group;  // by device
};

/// Joins every device of `lacking` to one of `roots` or to one joined before, parents first. Exactly one edge
/// enters a group that has no root; other edges stay in their group. A parent is chosen that stays below the
/// floor, then one near the root, then the least busy: relays only where direct ways would make somebody the
/// bottleneck.
std::vector<Edge> grow_tree(const std::vector<int32_t>& roots, const std::vector<int32_t>& lacking,
                            const TreeLoad& load);

}  // namespace partita::reshard
