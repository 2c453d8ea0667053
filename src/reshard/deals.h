#pragma once

#include <cstdint>
#include <vector>

#include "reshard/work.h"

namespace partita::reshard {

/// The fewest transfers for every set of tiles; a set is a mask, bit t is tile t.
/// Example: tiles 0 and 1 on device 0, tile 2 on device 1: all three to device 2 cost 2, to device 1 cost 1.
class SumTable {
 public:
  static constexpr size_t kMaxTiles = 12;

  /// REQUIRES: at most kMaxTiles tiles.
  explicit SumTable(const Sources& sources);

  uint32_t all() const { return static_cast<uint32_t>(cover_.size() - 1); }
  /// The least number of devices that have the tiles of a set together.
  int64_t cover(uint32_t set) const { return cover_[set]; }
  /// What brings the sum of a set to these devices, which are sorted. Complete copies are not looked at.
  int64_t transfers(uint32_t set, const std::vector<int32_t>& want) const;
  /// The same where `guest`, who does not want it, receives what is in no tile of `own`, its own among them:
  /// as many transfers if it can add its own and pass it on, one more otherwise. A bound.
  int64_t transfers(uint32_t set, const std::vector<int32_t>& want, int32_t guest, uint32_t own) const;
  /// The tiles of a device.
  uint32_t held(int32_t device) const;

 private:
  std::vector<int32_t> devices_;  // with a tile, sorted
  std::vector<uint32_t> masks_;   // what they have
  std::vector<int8_t> cover_;     // by set
};

/// The least sum of cost[target][set] over all ways to give every tile to one target.
int64_t least_split(const std::vector<std::vector<int32_t>>& cost);

/// Tiles dealt to targets so that all sums together cost least: every tile to one target.
struct LeastDeals {
  int64_t transfers = 0;
  std::vector<std::vector<int32_t>> targets;  // target by tile; several that cost the same, at most `most`
};
LeastDeals least_deals(const SumTable& table, const std::vector<std::vector<int32_t>>& wants, size_t most);

}  // namespace partita::reshard
