#pragma once

#include <optional>
#include <span>

#include "choose/table.h"

namespace partita::choose {

/// A choice within `capacity`, near the best where `multiplier` is near the best: every class at its cheapest
/// option under the prices (raised until that fits), then the room that is left filled by value for weight.
/// Nothing: no price makes the cheapest options fit.
std::optional<OptionCounts> fill(const Table& table, std::span<const int64_t> capacity,
                                 std::span<const double> multiplier);

}  // namespace partita::choose
