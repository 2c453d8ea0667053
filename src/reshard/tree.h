#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace partita::reshard {

/// Groups of devices, the innermost level first: `levels[k][device]` is its group. A group of one level lies
/// in one group of the next. No levels: all devices are one group.
using Levels = std::vector<std::vector<int32_t>>;

/// The lowest level whose groups both devices share; levels.size() where they share none.
int shared_level(const Levels& levels, int32_t a, int32_t b);

struct Edge {
  int32_t parent = 0, child = 0;
  int32_t depth = 1;  // of the child; roots have 0
};

/// How busy parents are: elements by device, what one more child adds, and how much costs nothing.
struct TreeLoad {
  const std::vector<int64_t>& busy;
  int64_t elements = 0, floor = 0;
  const Levels& levels;
};

/// Grows one tree after the other; it keeps its memory, as a search grows very many.
class TreeGrower {
 public:
  /// Joins every device of `lacking` to one of `roots` or to one joined before, parents first. Exactly one
  /// edge enters a group that has no root, on every level; other edges stay in their group. A parent is
  /// chosen that stays below the floor, then one near the root, then the least busy: relays only where direct
  /// ways would make somebody the bottleneck. The edges stand until the next call.
  const std::vector<Edge>& grow(std::span<const int32_t> roots, std::span<const int32_t> lacking,
                                const TreeLoad& load);

 private:
  struct Node {
    int32_t device, depth;
    int64_t busy;
  };

  void add(int32_t device, int32_t depth, const TreeLoad& load);
  void join(int32_t device, size_t level, const TreeLoad& load);
  bool is_entered(const std::vector<int32_t>& group, int32_t device) const;

  std::vector<Node> nodes_;
  std::vector<int32_t> lacking_;
  std::vector<Edge> edges_;
};

}  // namespace partita::reshard
