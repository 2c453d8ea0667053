#pragma once

#include <vector>

#include "reshard/work.h"

namespace partita::reshard {

struct SumCost {
  int64_t transfers = 0, bound = 0;  // of one element; bound is less only where the search was cut short
};

/// The fewest transfers that make and spread a sum. REQUIRES: nobody has the value.
SumCost least_sum(const Cells& cells, const ClassWork& work, const Job& job);

/// One way to make a sum that nobody has: `owner` is the first to have it.
struct SumWay {
  struct Part {
    std::vector<int32_t> tiles;    // that one device adds
    std::vector<int32_t> devices;  // any one of these
  };
  int32_t owner = 0;
  std::vector<int32_t> own;        // tiles of the owner
  std::vector<Part> parts;         // each is one transfer
  int64_t transfers = 0;           // those, and one for every device of `want` but the owner
  std::vector<int64_t> crossings;  // by level, the widest groups first: the least of them that leave a group
};

/// All ways with the fewest transfers and, among those, the fewest crossings. Where no other thing decides
/// (one group, one tile a device) and `bare`, only the first has its tiles and parts. REQUIRES: nobody has
/// the value.
std::vector<SumWay> ways_to_sum(const Cells& cells, const ClassWork& work, const Job& job, bool bare);

/// The way with this owner, which is that of one of ways_to_sum, with its tiles and parts.
SumWay way_to_sum(const Cells& cells, const ClassWork& work, const Job& job, int32_t owner);

}  // namespace partita::reshard
