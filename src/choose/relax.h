#pragma once

#include <optional>
#include <span>
#include <vector>

#include "choose/table.h"

namespace partita::choose {

/// Every class at the option that is cheapest when a byte at moment t costs `multiplier[t]` seconds; of equal
/// ones the one with fewer weighted bytes.
struct Priced {
  std::vector<int32_t> option;  // by class
  double value = 0;             // seconds + price of the bytes, of all
  double seconds = 0;
  std::vector<int64_t> bytes;  // by moment
};
Priced price(const Table& table, std::span<const double> multiplier);

/// No choice within `capacity` takes fewer seconds than `bound`.
struct Relaxed {
  std::vector<double> multiplier;  // seconds that one byte more at each moment would save, at the margin
  double bound = 0;
};

/// The best bound that multipliers give: the value of the linear relaxation, whose solutions may share an
/// operator between options. Nothing: not even those fit.
/// `hint`: multipliers of a problem much like it, or none; they save time.
/// REQUIRES: every class has an option.
std::optional<Relaxed> relax(const Table& table, std::span<const int64_t> capacity,
                             std::span<const double> hint = {});

}  // namespace partita::choose
