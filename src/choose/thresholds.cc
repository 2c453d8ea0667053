#include "choose/thresholds.h"

#include <algorithm>

namespace partita::choose {
namespace {

std::vector<int64_t> pick(const Thresholds& thresholds, const std::vector<int32_t>& at) {
  std::vector<int64_t> values;
  for (size_t l = 0; l < at.size(); ++l) values.push_back(thresholds[l][at[l]]);
  return values;
}

}  // namespace

Thresholds thresholds_of(const Table& table) {
  Thresholds thresholds(table.limits);
  for (int l = 0; l < table.limits; ++l) {
    int64_t floor = 0;
    std::vector<int64_t>& values = thresholds[l];
    for (const TableClass& cls : table.classes) {
      int64_t least = INT64_MAX;
      for (int32_t j = cls.first; j < cls.last; ++j) {
        least = std::min(least, table.transient_of(j)[l]);
        values.push_back(table.transient_of(j)[l]);
      }
      floor = std::max(floor, least);
    }
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    values.erase(values.begin(), std::lower_bound(values.begin(), values.end(), floor));
  }
  return thresholds;
}

ThresholdBox whole(const Thresholds& thresholds) {
  ThresholdBox box;
  for (const std::vector<int64_t>& values : thresholds) {
    box.low.push_back(0);
    box.high.push_back(static_cast<int32_t>(values.size()) - 1);
  }
  return box;
}

std::pair<ThresholdBox, ThresholdBox> halves(const ThresholdBox& box) {
  size_t widest = 0;
  for (size_t l = 1; l < box.low.size(); ++l)
    if (box.high[l] - box.low[l] > box.high[widest] - box.low[widest]) widest = l;
  ThresholdBox lower = box, upper = box;
  lower.high[widest] = (box.low[widest] + box.high[widest]) / 2;
  upper.low[widest] = lower.high[widest] + 1;
  return {lower, upper};
}

std::vector<int64_t> lowest(const Thresholds& thresholds, const ThresholdBox& box) {
  return pick(thresholds, box.low);
}
std::vector<int64_t> highest(const Thresholds& thresholds, const ThresholdBox& box) {
  return pick(thresholds, box.high);
}

}  // namespace partita::choose
