#include "choose/relax.h"

#include <algorithm>
#include <cmath>

#include "choose/resource_prices.h"

namespace partita::choose {
namespace {

/// Some moment alone cannot hold even the fewest bytes of every class.
bool one_moment_overflows(const Table& table, std::span<const int64_t> capacity) {
  for (int t = 0; t < table.moments; ++t) {
    int64_t least = 0;
    for (const TableClass& cls : table.classes) {
      int64_t fewest = INT64_MAX;
      for (int32_t j = cls.first; j < cls.last; ++j) fewest = std::min(fewest, table.bytes_of(j)[t]);
      least += cls.count * fewest;
    }
    if (least > capacity[t]) return true;
  }
  return false;
}

Proposal fewest_bytes(const Table& table, std::span<const double> multiplier) {
  Proposal fewest{.bytes = std::vector<int64_t>(table.moments)};
  for (const TableClass& cls : table.classes) {
    int32_t best = cls.first;
    double least = HUGE_VAL;
    for (int32_t j = cls.first; j < cls.last; ++j) {
      double weight = 0;
      for (int t = 0; t < table.moments; ++t)
        weight += multiplier[t] * static_cast<double>(table.bytes_of(j)[t]);
      if (weight < least) {
        least = weight;
        best = j;
      }
    }
    auto count = static_cast<double>(cls.count);
    fewest.value += count * least;
    fewest.seconds += count * table.seconds[best];
    for (int t = 0; t < table.moments; ++t) fewest.bytes[t] += cls.count * table.bytes_of(best)[t];
  }
  return fewest;
}

}  // namespace

Priced price(const Table& table, std::span<const double> multiplier) {
  Priced priced{.bytes = std::vector<int64_t>(table.moments)};
  for (const TableClass& cls : table.classes) {
    int32_t best = cls.first;
    double least = HUGE_VAL, lightest = HUGE_VAL;
    for (int32_t j = cls.first; j < cls.last; ++j) {
      const int64_t* bytes = table.bytes.data() + int64_t{j} * table.moments;
      double weight = multiplier[0] * static_cast<double>(bytes[0]);
      for (int t = 1; t < table.moments; ++t) weight += multiplier[t] * static_cast<double>(bytes[t]);
      double value = table.seconds[j] + weight;
      // Equal but for rounding: the options between which the multiplier is indifferent.
      double slack = 1e-13 * std::abs(value);
      if (value < least - slack || (value <= least + slack && weight < lightest)) {
        best = j;
        least = value;
        lightest = weight;
      }
    }
    auto count = static_cast<double>(cls.count);
    priced.option.push_back(best);
    priced.value += count * least;
    priced.seconds += count * table.seconds[best];
    for (int t = 0; t < table.moments; ++t) priced.bytes[t] += cls.count * table.bytes_of(best)[t];
  }
  return priced;
}

std::optional<Relaxed> relax(const Table& table, std::span<const int64_t> capacity,
                             std::span<const double> hint) {
  if (one_moment_overflows(table, capacity)) return std::nullopt;
  double slowest = 0;
  for (const TableClass& cls : table.classes)
    slowest += static_cast<double>(cls.count) *
               *std::max_element(table.seconds.begin() + cls.first, table.seconds.begin() + cls.last);
  auto oracle = [&](std::span<const double> multiplier, bool with_seconds) {
    if (!with_seconds) return fewest_bytes(table, multiplier);
    Priced priced = price(table, multiplier);
    return Proposal{priced.value, priced.seconds, priced.bytes};
  };
  std::optional<ResourcePrices> prices = find_prices(oracle, capacity, slowest, hint);
  if (!prices) return std::nullopt;
  return Relaxed{prices->multiplier, prices->bound};
}

}  // namespace partita::choose
