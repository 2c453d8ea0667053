#include "choose/fill.h"

#include <algorithm>
#include <cmath>

#include "choose/relax.h"

namespace partita::choose {
namespace {

constexpr int kPasses = 12;

bool fits(const Priced& priced, std::span<const int64_t> capacity) {
  for (size_t t = 0; t < capacity.size(); ++t)
    if (priced.bytes[t] > capacity[t]) return false;
  return true;
}

std::vector<double> scaled(std::span<const double> multiplier, double factor) {
  std::vector<double> out;
  for (double value : multiplier) out.push_back(value * factor);
  return out;
}

/// The lowest common factor on the prices, to a few digits, at which the cheapest options fit.
std::optional<Priced> cheapest_that_fits(const Table& table, std::span<const int64_t> capacity,
                                         std::span<const double> multiplier) {
  Priced priced = price(table, multiplier);
  if (fits(priced, capacity)) return priced;
  double low = 1, high = 2;
  std::optional<Priced> found;
  for (; high < 1e9; low = high, high *= high) {
    priced = price(table, scaled(multiplier, high));
    if (!fits(priced, capacity)) continue;
    found = priced;
    break;
  }
  for (int round = 0; found && round < 12; ++round) {
    double middle = std::sqrt(low * high);
    priced = price(table, scaled(multiplier, middle));
    bool enough = fits(priced, capacity);
    (enough ? high : low) = middle;
    if (enough) found = priced;
  }
  return found;
}

struct Upgrade {
  double worth = 0;  // seconds saved for each priced byte
  int32_t from = 0, to = 0;
};

std::vector<Upgrade> upgrades(const Table& table, const OptionCounts& counts,
                              std::span<const double> multiplier) {
  std::vector<Upgrade> list;
  for (const TableClass& cls : table.classes)
    for (int32_t i = cls.first; i < cls.last; ++i)
      // Options stand by seconds.
      for (int32_t j = cls.first; counts[i] > 0 && j < i; ++j) {
        double saved = table.seconds[i] - table.seconds[j], weight = 0;
        for (int t = 0; t < table.moments; ++t)
          weight += multiplier[t] * static_cast<double>(table.bytes_of(j)[t] - table.bytes_of(i)[t]);
        if (saved > 0) list.push_back({weight <= 0 ? HUGE_VAL : saved / weight, i, j});
      }
  std::stable_sort(list.begin(), list.end(),
                   [](const Upgrade& a, const Upgrade& b) { return a.worth > b.worth; });
  return list;
}

/// Takes as much of each upgrade as there is room for; true if any was taken.
bool upgrade(const Table& table, std::span<const double> multiplier, OptionCounts& counts,
             std::vector<int64_t>& room) {
  bool any = false;
  for (const Upgrade& step : upgrades(table, counts, multiplier)) {
    int64_t taken = counts[step.from];
    for (int t = 0; t < table.moments; ++t) {
      int64_t more = table.bytes_of(step.to)[t] - table.bytes_of(step.from)[t];
      if (more > 0) taken = std::min(taken, room[t] / more);
    }
    if (taken == 0) continue;
    any = true;
    counts[step.from] -= taken;
    counts[step.to] += taken;
    for (int t = 0; t < table.moments; ++t)
      room[t] -= taken * (table.bytes_of(step.to)[t] - table.bytes_of(step.from)[t]);
  }
  return any;
}

}  // namespace

std::optional<OptionCounts> fill(const Table& table, std::span<const int64_t> capacity,
                                 std::span<const double> multiplier) {
  std::optional<Priced> base = cheapest_that_fits(table, capacity, multiplier);
  if (!base) return std::nullopt;
  OptionCounts counts(table.seconds.size());
  std::vector<int64_t> room(capacity.begin(), capacity.end());
  for (size_t c = 0; c < table.classes.size(); ++c) counts[base->option[c]] = table.classes[c].count;
  for (size_t t = 0; t < room.size(); ++t) room[t] -= base->bytes[t];
  // Once is enough where one class is split; where many are indifferent the first steps may have been short.
  for (int pass = 0; pass < kPasses && upgrade(table, multiplier, counts, room); ++pass) continue;
  return counts;
}

}  // namespace partita::choose
