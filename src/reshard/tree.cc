#include "reshard/tree.h"

#include <algorithm>
#include <tuple>

namespace partita::reshard {
namespace {

/// Stable. Few devices are the rule, and a sort that asks for memory would cost more than it saves.
void sort_by_load(std::vector<int32_t>& devices, const std::vector<int64_t>& busy) {
  auto less = [&](int32_t a, int32_t b) { return busy[a] < busy[b]; };
  if (devices.size() > 32) return std::stable_sort(devices.begin(), devices.end(), less);
  for (size_t i = 1; i < devices.size(); ++i)
    std::rotate(std::upper_bound(devices.begin(), devices.begin() + i, devices[i], less), devices.begin() + i,
                devices.begin() + i + 1);
}

}  // namespace

const std::vector<Edge>& TreeGrower::grow(std::span<const int32_t> roots, std::span<const int32_t> lacking,
                                          const TreeLoad& load) {
  nodes_.clear();
  edges_.clear();
  for (int32_t device : roots) add(device, 0, load);
  // Who is least busy joins first: only who has joined can be a parent.
  lacking_.assign(lacking.begin(), lacking.end());
  sort_by_load(lacking_, load.busy);
  // The first of a group without the value fetches it from outside, widest groups first; the others find it
  // at home.
  for (size_t level = load.levels.size(); level-- > 0;)
    std::erase_if(lacking_, [&](int32_t device) {
      if (is_entered(load.levels[level], device)) return false;
      join(device, level + 1, load);
      return true;
    });
  for (int32_t device : lacking_) join(device, 0, load);
  return edges_;
}

bool TreeGrower::is_entered(const std::vector<int32_t>& group, int32_t device) const {
  return std::any_of(nodes_.begin(), nodes_.end(),
                     [&](const Node& node) { return group[node.device] == group[device]; });
}

void TreeGrower::add(int32_t device, int32_t depth, const TreeLoad& load) {
  nodes_.push_back({device, depth, load.busy[device]});
}

/// The parent is of the same group of this level; of any where there is no such level.
void TreeGrower::join(int32_t device, size_t level, const TreeLoad& load) {
  auto rank = [&](const Node& node) {
    int64_t over = std::max<int64_t>(0, node.busy + load.elements - load.floor);
    return std::tuple(over, node.depth, node.busy);
  };
  const std::vector<int32_t>* group = level == load.levels.size() ? nullptr : &load.levels[level];
  Node* best = nullptr;
  for (Node& node : nodes_)
    if ((!group || (*group)[node.device] == (*group)[device]) && (!best || rank(node) < rank(*best)))
      best = &node;
  best->busy += load.elements;
  edges_.push_back({best->device, device, best->depth + 1});
  add(device, edges_.back().depth, load);
}

int shared_level(const Levels& levels, int32_t a, int32_t b) {
  int level = 0;
  while (level < static_cast<int>(levels.size()) && levels[level][a] != levels[level][b]) ++level;
  return level;
}

}  // namespace partita::reshard
