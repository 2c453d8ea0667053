#include "reshard/sums.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <map>
#include <set>

#include "base/error.h"
#include "reshard/cover_set.h"

namespace partita::reshard {
namespace {

bool has(const std::vector<int32_t>& sorted, int32_t value) {
  return std::binary_search(sorted.begin(), sorted.end(), value);
}

/// The least where no device has two of the job's tiles.
SumCost sum_of_single_tiles(const Job& job, const std::vector<int32_t>& holders) {
  bool consumed = std::any_of(job.want.begin(), job.want.end(), [&](int32_t d) { return has(holders, d); });
  int64_t transfers = static_cast<int64_t>(job.tiles.size() + job.want.size()) - (consumed ? 2 : 1);
  return {transfers, transfers};
}

/// The job's tiles by device.
class Summer {
 public:
  Summer(const Cells& cells, const ClassWork& work, const Job& job) : cells_(cells), work_(work), job_(job) {
    for (int32_t tile : job.tiles)
      for (int32_t device : work.holders()[tile]) held_.emplace_back(device, tile);
    std::sort(held_.begin(), held_.end());
    for (const auto& [device, tile] : held_) {
      one_each_ = one_each_ && (devices_.empty() || devices_.back() != device);
      if (devices_.empty() || devices_.back() != device) devices_.push_back(device);
    }
  }

  SumCost least() const {
    if (one_each_) return sum_of_single_tiles(job_, devices_);
    int64_t wanted = static_cast<int64_t>(job_.want.size());
    SumCost least{std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::max()};
    for (int32_t owner : owners()) {
      auto [parts, exact] = cover(owner);
      int64_t after = wanted - (has(job_.want, owner) ? 1 : 0);
      int64_t transfers = static_cast<int64_t>(parts.size()) + after;
      least.transfers = std::min(least.transfers, transfers);
      least.bound = std::min(least.bound, exact ? transfers : after + 1);
    }
    return least;
  }

  std::vector<SumWay> ways(bool bare) const {
    std::vector<SumWay> best;
    SumCost least = this->least();
    bare = bare && one_each_ && !cells_.grouped;
    for (int32_t owner : owners()) {
      if (one_each_ && transfers_of(owner) > least.transfers) continue;
      if (bare && !best.empty()) {
        best.emplace_back().owner = owner;
        best.back().transfers = least.transfers;
        continue;
      }
      SumWay way = make(owner);
      if (way.transfers > least.transfers) continue;
      if (!best.empty() && way.crossings < best[0].crossings) best.clear();
      if (best.empty() || way.crossings == best[0].crossings) best.push_back(std::move(way));
    }
    return best;
  }

  SumWay make(int32_t owner) const {
    SumWay way{.owner = owner, .own = own(owner)};
    way.parts = one_each_ ? alone(owner) : cover(owner).first;
    way.transfers =
        static_cast<int64_t>(way.parts.size() + job_.want.size()) - (has(job_.want, owner) ? 1 : 0);
    way.crossings = crossings(way);
    return way;
  }

 private:
  using Parts = std::vector<SumWay::Part>;

  int64_t transfers_of(int32_t owner) const {
    return static_cast<int64_t>(job_.tiles.size() + job_.want.size()) - (has(devices_, owner) ? 1 : 0) -
           (has(job_.want, owner) ? 1 : 0);
  }

  /// Needers first, then other holders.
  std::vector<int32_t> owners() const {
    std::vector<int32_t> list = job_.want;
    std::set_difference(devices_.begin(), devices_.end(), job_.want.begin(), job_.want.end(),
                        std::back_inserter(list));
    return list;
  }

  std::vector<int32_t> own(int32_t owner) const {
    std::vector<int32_t> tiles;
    auto at = std::lower_bound(held_.begin(), held_.end(), std::pair(owner, int32_t{-1}));
    for (; at != held_.end() && at->first == owner; ++at) tiles.push_back(at->second);
    return tiles;
  }

  std::vector<int32_t> lacking(int32_t owner) const {
    std::vector<int32_t> mine = own(owner), rest;
    std::set_difference(job_.tiles.begin(), job_.tiles.end(), mine.begin(), mine.end(),
                        std::back_inserter(rest));
    return rest;
  }

  int32_t widest(int32_t device) const { return cells_.grouped ? cells_.levels.back()[device] : 0; }

  /// One part a tile, from the fewest groups that have them all, the owner's first; of the widest groups,
  /// then of those inside the chosen ones.
  Parts alone(int32_t owner) const {
    Parts parts;
    for (int32_t tile : lacking(owner)) parts.push_back({{tile}, work_.holders()[tile]});
    for (size_t level = cells_.levels.size(); level-- > 0;) narrow(cells_.levels[level], owner, parts);
    return parts;
  }

  static void narrow(const std::vector<int32_t>& group, int32_t owner, Parts& parts) {
    std::set<int32_t> groups = fewest_groups(group, group[owner], parts);
    for (SumWay::Part& part : parts) {
      bool near = std::any_of(part.devices.begin(), part.devices.end(),
                              [&](int32_t device) { return group[device] == group[owner]; });
      std::erase_if(part.devices, [&](int32_t device) {
        return near ? group[device] != group[owner] : groups.count(group[device]) == 0;
      });
    }
  }

  static std::set<int32_t> fewest_groups(const std::vector<int32_t>& group, int32_t home,
                                         const Parts& parts) {
    std::set<int32_t> all;
    for (const SumWay::Part& part : parts)
      for (int32_t device : part.devices) all.insert(group[device]);
    if (all.size() <= 1 || parts.size() > 64) return all;
    std::map<int32_t, uint64_t> masks;
    for (size_t i = 0; i < parts.size(); ++i)
      for (int32_t device : parts[i].devices) masks[group[device]] |= uint64_t{1} << i;
    uint64_t left = ~uint64_t{0} >> (64 - parts.size());
    left &= ~masks[home];
    std::vector<int32_t> labels;
    std::vector<uint64_t> flat;
    for (const auto& [number, mask] : masks) labels.push_back(number), flat.push_back(mask);
    std::set<int32_t> chosen = {home};
    if (left)
      for (int32_t at : least_cover(left, flat, labels, home).first) chosen.insert(labels[at]);
    return chosen;
  }

  /// The fewest other devices that have what the owner lacks; each tile is added by the first of them that
  /// has it.
  std::pair<Parts, bool> cover(int32_t owner) const {
    std::vector<int32_t> rest = lacking(owner);
    CHECK(!rest.empty());
    if (rest.size() > 64) return {greedy_cover(owner, rest), false};
    std::vector<uint64_t> masks;
    std::vector<int32_t> devices, labels;
    for (int32_t device : devices_) {
      std::vector<int32_t> tiles = own(device);
      uint64_t mask = 0;
      for (size_t i = 0; i < rest.size(); ++i)
        if (has(tiles, rest[i])) mask |= uint64_t{1} << i;
      if (device == owner || !mask) continue;
      masks.push_back(mask), devices.push_back(device), labels.push_back(widest(device));
    }
    auto [chosen, exact] = least_cover(~uint64_t{0} >> (64 - rest.size()), masks, labels, widest(owner));
    Parts parts;
    uint64_t taken = 0;
    for (int32_t at : chosen) {
      SumWay::Part part{{}, {devices[at]}};
      for (uint64_t fresh = masks[at] & ~taken; fresh; fresh &= fresh - 1)
        part.tiles.push_back(rest[std::countr_zero(fresh)]);
      taken |= masks[at];
      parts.push_back(std::move(part));
    }
    return {parts, exact};
  }

  Parts greedy_cover(int32_t owner, std::vector<int32_t> rest) const {
    Parts parts;
    while (!rest.empty()) {
      SumWay::Part best;
      for (int32_t device : devices_) {
        if (device == owner) continue;
        std::vector<int32_t> tiles = own(device);
        SumWay::Part part{{}, {device}};
        std::set_intersection(rest.begin(), rest.end(), tiles.begin(), tiles.end(),
                              std::back_inserter(part.tiles));
        if (part.tiles.size() > best.tiles.size()) best = std::move(part);
      }
      std::vector<int32_t> left;
      std::set_difference(rest.begin(), rest.end(), best.tiles.begin(), best.tiles.end(),
                          std::back_inserter(left));
      rest = std::move(left);
      parts.push_back(std::move(best));
    }
    return parts;
  }

  /// A tree inside every group, one transfer between groups for every group but the owner's; the same way
  /// back. The widest groups first.
  std::vector<int64_t> crossings(const SumWay& way) const {
    std::vector<int64_t> list;
    for (size_t level = cells_.levels.size(); level-- > 0;)
      list.push_back(crossings(way, cells_.levels[level]));
    return list;
  }

  int64_t crossings(const SumWay& way, const std::vector<int32_t>& group) const {
    int32_t home = group[way.owner];
    std::set<int32_t> in, out;
    for (const SumWay::Part& part : way.parts) {
      bool counted = false;
      for (int32_t device : part.devices)
        counted = counted || in.count(group[device]) || group[device] == home;
      if (!counted) in.insert(group[part.devices[0]]);
    }
    for (int32_t device : job_.want)
      if (group[device] != home) out.insert(group[device]);
    return static_cast<int64_t>(in.size() + out.size());
  }

  const Cells& cells_;
  const ClassWork& work_;
  const Job& job_;
  std::vector<std::pair<int32_t, int32_t>> held_;  // (device, tile)
  std::vector<int32_t> devices_;                   // of those
  bool one_each_ = true;
};

}  // namespace

SumCost least_sum(const Cells& cells, const ClassWork& work, const Job& job) {
  // A class for every device that wants a part of one sum: what they share must not be made for each.
  if (work.sources->one_each && job.tiles.size() == work.tiles().size())
    return sum_of_single_tiles(job, work.sources->devices);
  return Summer(cells, work, job).least();
}

std::vector<SumWay> ways_to_sum(const Cells& cells, const ClassWork& work, const Job& job, bool bare) {
  return Summer(cells, work, job).ways(bare);
}

SumWay way_to_sum(const Cells& cells, const ClassWork& work, const Job& job, int32_t owner) {
  return Summer(cells, work, job).make(owner);
}

}  // namespace partita::reshard
