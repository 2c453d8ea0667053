#include "layout/reshard/tree.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace partita::reshard {
namespace {

class Grower {
 public:
  Grower(const std::vector<int32_t>& roots, const TreeLoad& load)
      : load_(load), levels_(load.levels), entered_(load.levels.size()) {
    for (int32_t device : roots) add(device, 0);
  }

  std::vector<Edge> run(std::vector<int32_t> lacking) {
    // Who is least busy joins first: only who has joined can be a parent.
    std::stable_sort(lacking.begin(), lacking.end(),
                     [&](int32_t a, int32_t b) { return load_.busy[a] < load_.busy[b]; });
    // The first of a group without the value fetches it from outside, widest groups first; the others find it
    // at home.
    for (size_t level = levels_.size(); level-- > 0;) {
      std::vector<int32_t> rest;
      for (int32_t device : lacking) {
        if (entered_[level].count(levels_[level][device]))
          rest.push_back(device);
        else
          join(device, level + 1);
      }
      lacking = std::move(rest);
    }
    for (int32_t device : lacking) join(device, 0);
    return std::move(edges_);
  }

 private:
  struct Node {
    int32_t device, depth;
    int64_t busy;
  };

  void add(int32_t device, int32_t depth) {
    nodes_.push_back({device, depth, load_.busy[device]});
    for (size_t level = 0; level < levels_.size(); ++level) entered_[level].insert(levels_[level][device]);
  }

  /// The parent is of the same group of this level; of any where there is no such level.
  void join(int32_t device, size_t level) {
    auto rank = [&](const Node& node) {
      int64_t over = std::max<int64_t>(0, node.busy + load_.elements - load_.floor);
      return std::tuple(over, node.depth, node.busy);
    };
    Node* best = nullptr;
    for (Node& node : nodes_)
      if ((level == levels_.size() || levels_[level][node.device] == levels_[level][device]) &&
          (!best || rank(node) < rank(*best)))
        best = &node;
    best->busy += load_.elements;
    edges_.push_back({best->device, device, best->depth + 1});
    add(device, best->depth + 1);
  }

  const TreeLoad& load_;
  const Levels& levels_;
  std::vector<Node> nodes_;
  std::vector<std::set<int32_t>> entered_;  // groups by level
  std::vector<Edge> edges_;
};

}  // namespace

int shared_level(const Levels& levels, int32_t a, int32_t b) {
  int level = 0;
  while (level < static_cast<int>(levels.size()) && levels[level][a] != levels[level][b]) ++level;
  return level;
}

std::vector<Edge> grow_tree(const std::vector<int32_t>& roots, const std::vector<int32_t>& lacking,
                            const TreeLoad& load) {
  return Grower(roots, load).run(lacking);
}

}  // namespace partita::reshard
