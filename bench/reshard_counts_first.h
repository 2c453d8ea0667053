#pragma once

#include "reshard_layouts.h"

namespace partita::reshard {

/// What a search over counts finds for a pair of layouts.
struct CountsFirst {
  bool aligned = false;  // false: it went through full replication
  bool right = false;    // every device ends with its piece
  int64_t elements = 0;  // received, over all devices
};

/// nnScaler's intra-group search, re-stated from its description, not its code: shortest path over counts (R,
/// V, D..) where a hop shrinks one component and grows another (cost = elements one device receives + 1),
/// then a depth-first choice of device orders, and source -> full replication -> target where none fits.
/// Collectives take their ranks in ascending order, as a set does. The data is really moved. REQUIRES: target
/// V is 1, dimensions divide evenly.
CountsFirst counts_first(const Counts& from, const std::vector<int32_t>& from_devices, const Counts& to,
                         const std::vector<int32_t>& to_devices, const std::vector<int64_t>& shape);

}  // namespace partita::reshard
