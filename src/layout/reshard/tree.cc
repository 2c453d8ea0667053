#include "layout/reshard/tree.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace partita::reshard {
namespace {

class Grower {
 public:
  Grower(const std::vector<int32_t>& roots, const TreeLoad& load) : load_(load) {
    for (int32_t device : roots) add(device, 0);
  }

  std::vector<Edge> run(std::vector<int32_t> lacking) {
    // Who is least busy joins first: only who has joined can be a parent.
    std::stable_sort(lacking.begin(), lacking.end(),
                     [&](int32_t a, int32_t b) { return load_.busy[a] < load_.busy[b]; });
    std::vector<int32_t> rest;
    for (int32_t device : lacking) {
      // The first of a group without the value fetches it from outside; the others find it at home.
      if (entered_.count(load_.group[device]))
        rest.push_back(device);
      else
        join(device, false);
    }
    for (int32_t device : rest) join(device, true);
    return std::move(edges_);
  }

 private:
  struct Node {
    int32_t device, depth;
    int64_t busy;
  };

  void add(int32_t device, int32_t depth) {
    nodes_.push_back({device, depth, load_.busy[device]});
    entered_.insert(load_.group[device]);
  }

  void join(int32_t device, bool at_home) {
    auto rank = [&](const Node& node) {
      int64_t over = std::max<int64_t>(0, node.busy + load_.elements - load_.floor);
      return std::tuple(over, node.depth, node.busy);
    };
    Node* best = nullptr;
    for (Node& node : nodes_)
      if ((!at_home || load_.group[node.device] == load_.group[device]) &&
          (!best || rank(node) < rank(*best)))
        best = &node;
    best->busy += load_.elements;
    edges_.push_back({best->device, device, best->depth + 1});
    add(device, best->depth + 1);
  }

  const TreeLoad& load_;
  std::vector<Node> nodes_;
  std::set<int32_t> entered_;  // groups
  std::vector<Edge> edges_;
};

}  // namespace

std::vector<Edge> grow_tree(const std::vector<int32_t>& roots, const std::vector<int32_t>& lacking,
                            const TreeLoad& load) {
  return Grower(roots, load).run(lacking);
}

}  // namespace partita::reshard
