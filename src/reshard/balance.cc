#include "reshard/balance.h"

#include <algorithm>
#include <map>
#include <queue>
#include <span>
#include <tuple>

#include "base/error.h"

namespace partita::reshard {
namespace {

/// How often every device of one group is a parent of another part of that group, in one tree. Level 0 are
/// the innermost groups, whose parts are devices; the parts of later ones are groups of the level before.
///
/// Any counts make a tree as long as some part with a root has one: join the parts with most children first,
/// each below one that has joined and has children left. Counts add up to the parts that join, so there
/// always is one. So trees need not be thought of while children are given from device to device.
struct Row {
  int32_t tree = 0, level = 0, group = 0;
  std::vector<int32_t> devices, counts;
  std::vector<uint8_t> rooted;  // the device's part has a root
  int32_t rooted_counts = 0;
  bool any_root = false;

  size_t position(int32_t device) const {
    return std::lower_bound(devices.begin(), devices.end(), device) - devices.begin();
  }
  bool may_give(size_t from, size_t to) const {
    return counts[from] > 0 && !(any_root && rooted[from] && !rooted[to] && rooted_counts == 1);
  }
  void give(size_t from, size_t to) {
    --counts[from], ++counts[to];
    rooted_counts += int(rooted[to]) - int(rooted[from]);
  }
};

/// The rows of one tree; few.
using Rows = std::span<const Row>;

const Row* find_row(Rows rows, int32_t level, int32_t group) {
  for (const Row& row : rows)
    if (row.level == level && row.group == group) return &row;
  return nullptr;
}

int32_t group_at(const Levels& levels, size_t level, int32_t device) {
  return level < levels.size() ? levels[level][device] : 0;
}
int32_t part_at(const Levels& levels, size_t level, int32_t device) {
  return level == 0 ? device : levels[level - 1][device];
}

/// Grows a tree in which every device has as many children as its rows say.
class Planter {
 public:
  Planter(const Tree& tree, const Levels& levels, Rows rows)
      : tree_(tree), levels_(levels), rows_(rows), nodes_(tree.roots) {
    nodes_.insert(nodes_.end(), tree.lacking.begin(), tree.lacking.end());
    std::sort(nodes_.begin(), nodes_.end());
    nodes_.erase(std::unique(nodes_.begin(), nodes_.end()), nodes_.end());
  }

  std::vector<Edge> run() {
    grow(levels_.size(), nodes_, -1, 0);
    return std::move(edges_);
  }

 private:
  using Devices = std::vector<int32_t>;

  bool is_root(int32_t device) const {
    return std::find(tree_.roots.begin(), tree_.roots.end(), device) != tree_.roots.end();
  }
  bool has_root(const Devices& devices) const {
    return std::any_of(devices.begin(), devices.end(), [&](int32_t d) { return is_root(d); });
  }

  int32_t children(size_t level, int32_t device) const {
    const Row* row = find_row(rows_, int32_t(level), group_at(levels_, level, device));
    return row ? row->counts[row->position(device)] : 0;
  }

  /// The parts of a group, those with most children in it first.
  std::vector<Devices> parts_of(size_t level, const Devices& group) const {
    std::map<int32_t, Devices> by_part;
    for (int32_t device : group) by_part[part_at(levels_, level, device)].push_back(device);
    std::vector<std::pair<int32_t, Devices>> order;
    for (auto& [part, devices] : by_part) {
      int32_t sum = 0;
      for (int32_t device : devices) sum += children(level, device);
      order.emplace_back(-sum, std::move(devices));
    }
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Devices> parts;
    for (auto& [sum, devices] : order) parts.push_back(std::move(devices));
    return parts;
  }

  /// Who gets the value first in a group without a root.
  int32_t first_of(size_t level, const Devices& group) const {
    Devices part = parts_of(level, group)[0];
    return level == 0 ? part[0] : first_of(level - 1, part);
  }

  void settle(size_t level, const Devices& part, int32_t first, int32_t depth) {
    if (level > 0) return grow(level - 1, part, first, depth);
    depth_[part[0]] = depth;
  }

  /// Brings the value to a group: from its roots, or from `first`, who gets it at `depth`.
  void grow(size_t level, const Devices& group, int32_t first, int32_t depth) {
    using Place = std::tuple<int32_t, int32_t, int32_t>;  // depth, when it came, parent: the shallowest first
    std::priority_queue<Place, std::vector<Place>, std::greater<>> places;
    int32_t time = 0;
    auto open = [&](const Devices& part) {
      for (int32_t device : part)
        for (int32_t i = children(level, device); i > 0; --i)
          places.emplace(depth_.at(device), time++, device);
    };
    std::vector<Devices> later;
    for (Devices& part : parts_of(level, group)) {
      bool ready = first < 0 ? has_root(part) : std::find(part.begin(), part.end(), first) != part.end();
      if (!ready) {
        later.push_back(std::move(part));
        continue;
      }
      settle(level, part, first, first < 0 ? 0 : depth);
      open(part);
    }
    for (const Devices& part : later) {
      CHECK(!places.empty());
      auto [at, when, parent] = places.top();
      places.pop();
      int32_t child = level == 0 ? part[0] : first_of(level - 1, part);
      edges_.push_back({parent, child, at + 1});
      settle(level, part, child, at + 1);
      open(part);
    }
  }

  const Tree& tree_;
  const Levels& levels_;
  Rows rows_;
  Devices nodes_;
  std::map<int32_t, int32_t> depth_;
  std::vector<Edge> edges_;
};

// Children are flow: from the trees, by the device that serves them, to a sink, and what a device serves
// costs its square. A flow of least convex cost is one without a path along which a unit would go to a device
// that is less busy by more than a unit (Ahuja, Magnanti and Orlin 1993, section 14.5); only paths from the
// busiest device matter here. Starting from trees that are nearly even, few paths are needed.
class Balancer {
 public:
  Balancer(std::vector<Tree>& trees, const Levels& levels, std::vector<int64_t>& busy, int64_t max_work)
      : trees_(trees), levels_(levels), busy_(busy), work_(max_work), rows_of_(busy.size()) {
    for (size_t t = 0; t < trees.size(); ++t) {
      begin_.push_back(static_cast<int32_t>(rows_.size()));
      if (trees[t].elements > 0 && trees[t].roots.size() + trees[t].lacking.size() > 2)
        list_rows(static_cast<int32_t>(t));
    }
    begin_.push_back(static_cast<int32_t>(rows_.size()));
    changed_.assign(trees.size(), false);
  }

  void run() {
    while (work_ > 0 && relieve(std::max_element(busy_.begin(), busy_.end()) - busy_.begin())) {
    }
    for (size_t t = 0; t < trees_.size(); ++t)
      if (changed_[t])
        trees_[t].edges = Planter(trees_[t], levels_, rows_from(begin_[t], begin_[t + 1])).run();
  }

 private:
  Rows rows_from(int32_t begin, size_t end) const { return Rows(rows_).subspan(begin, end - begin); }

  void list_rows(int32_t t) {
    for (const Edge& edge : trees_[t].edges) {
      int32_t level = shared_level(levels_, edge.parent, edge.child);
      int32_t group = group_at(levels_, level, edge.parent);
      const Row* known = find_row(rows_from(begin_[t], rows_.size()), level, group);
      if (!known) add_row(t, level, group);
      Row& row = known ? rows_[known - rows_.data()] : rows_.back();
      size_t parent = row.position(edge.parent);
      ++row.counts[parent];
      row.rooted_counts += row.rooted[parent];
    }
  }

  void add_row(int32_t t, int32_t level, int32_t group) {
    Row row{.tree = t, .level = level, .group = group};
    row.devices.reserve(trees_[t].roots.size() + trees_[t].lacking.size());
    for (const auto* list : {&trees_[t].roots, &trees_[t].lacking})
      for (int32_t device : *list)
        if (group_at(levels_, level, device) == group) row.devices.push_back(device);
    std::sort(row.devices.begin(), row.devices.end());
    row.devices.erase(std::unique(row.devices.begin(), row.devices.end()), row.devices.end());
    row.counts.assign(row.devices.size(), 0);
    row.rooted.assign(row.devices.size(), false);
    for (size_t i = 0; i < row.devices.size(); ++i) {
      int32_t part = part_at(levels_, level, row.devices[i]);
      row.rooted[i] = std::any_of(trees_[t].roots.begin(), trees_[t].roots.end(),
                                  [&](int32_t root) { return part_at(levels_, level, root) == part; });
      row.any_root = row.any_root || row.rooted[i];
      rows_of_[row.devices[i]].push_back(static_cast<int32_t>(rows_.size()));
    }
    rows_.push_back(std::move(row));
  }

  int64_t elements(const Row& row) const { return trees_[row.tree].elements; }

  /// Gives one child of the device to others, by trees of one size; false where that helps nobody.
  bool relieve(int32_t device) {
    std::vector<int64_t> sizes;
    for (int32_t r : rows_of_[device])
      if (rows_[r].counts[rows_[r].position(device)] > 0) sizes.push_back(elements(rows_[r]));
    std::sort(sizes.begin(), sizes.end(), std::greater<>());
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    return std::any_of(sizes.begin(), sizes.end(), [&](int64_t size) { return relieve(device, size); });
  }

  bool relieve(int32_t device, int64_t size) {
    came_.assign(busy_.size(), {-1, -1});
    queue_.assign(1, device);
    came_[device] = {0, device};
    std::vector<int32_t>& queue = queue_;
    for (size_t head = 0; head < queue.size() && work_ > 0; ++head)
      for (int32_t r : rows_of_[queue[head]]) {
        const Row& row = rows_[r];
        size_t from = row.position(queue[head]);
        if (elements(row) != size || row.counts[from] == 0) continue;
        work_ -= static_cast<int64_t>(row.devices.size());
        for (size_t to = 0; to < row.devices.size(); ++to) {
          int32_t taker = row.devices[to];
          if (came_[taker].first >= 0 || !row.may_give(from, to)) continue;
          came_[taker] = {r, queue[head]};
          if (busy_[taker] + size < busy_[device]) return give(device, taker, size);
          queue.push_back(taker);
        }
      }
    return false;
  }

  /// Walks the path back; a row on it twice may not allow the second step after the first.
  bool give(int32_t from, int32_t to, int64_t size) {
    std::vector<std::tuple<int32_t, size_t, size_t>> done;
    for (int32_t at = to; at != from; at = came_[at].second) {
      Row& row = rows_[came_[at].first];
      size_t giver = row.position(came_[at].second), taker = row.position(at);
      if (!row.may_give(giver, taker)) {
        for (auto [r, a, b] : done) rows_[r].give(b, a);
        return false;
      }
      row.give(giver, taker);
      done.emplace_back(came_[at].first, giver, taker);
    }
    for (auto [r, a, b] : done) changed_[rows_[r].tree] = true;
    busy_[from] -= size;
    busy_[to] += size;
    return true;
  }

  std::vector<Tree>& trees_;
  const Levels& levels_;
  std::vector<int64_t>& busy_;
  int64_t work_;
  std::vector<Row> rows_;
  std::vector<std::vector<int32_t>> rows_of_;      // by device
  std::vector<int32_t> begin_;                     // first row of every tree, and the end
  std::vector<bool> changed_;                      // by tree
  std::vector<std::pair<int32_t, int32_t>> came_;  // by device of the search at hand: row, giver
  std::vector<int32_t> queue_;
};

}  // namespace

void balance(std::vector<Tree>& trees, const Levels& levels, std::vector<int64_t>& busy, int64_t max_work) {
  if (!busy.empty()) Balancer(trees, levels, busy, max_work).run();
}

}  // namespace partita::reshard
