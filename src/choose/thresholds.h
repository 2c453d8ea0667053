#pragma once

#include <utility>
#include <vector>

#include "choose/table.h"

namespace partita::choose {

/// Ranges of transients by limit: positions in the sorted list of those that occur.
struct ThresholdBox {
  std::vector<int32_t> low, high;  // both inclusive

  bool single() const { return low == high; }
};

/// Transients that occur and matter, ascending, by limit.
using Thresholds = std::vector<std::vector<int64_t>>;

/// From the largest of every class's least transient (some operator needs as much) to the largest of all.
Thresholds thresholds_of(const Table& table);

/// All of them.
ThresholdBox whole(const Thresholds& thresholds);

/// The two halves along the side with most thresholds. REQUIRES: not single.
std::pair<ThresholdBox, ThresholdBox> halves(const ThresholdBox& box);

std::vector<int64_t> lowest(const Thresholds& thresholds, const ThresholdBox& box);
std::vector<int64_t> highest(const Thresholds& thresholds, const ThresholdBox& box);

}  // namespace partita::choose
