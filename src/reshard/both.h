#pragma once

#include "reshard/work.h"

namespace partita::reshard {

/// What a class costs that lies as addends and is wanted both complete and as addends, where the tiles go to
/// several targets. (One target with all tiles is a sum like any other.)
struct BothCost {
  int64_t bound = 0;    // no way needs fewer transfers
  int64_t relayed = 0;  // with `relays`: every relay gets the addends of all targets, then copies the sum
  std::vector<int32_t> relays;
};

/// REQUIRES: there are tiles, at most SumTable::kMaxTiles. `wants` by target; all lists sorted. `enough`:
/// ways that are no better need not be found.
BothCost cost_of_both(const Sources& sources, const std::vector<int32_t>& complete,
                      const std::vector<std::vector<int32_t>>& wants, int64_t enough);

}  // namespace partita::reshard
