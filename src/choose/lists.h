#pragma once

#include <optional>
#include <span>

#include "choose/relax.h"

namespace partita::choose {

/// What a search by lists found below a given value.
struct ListedChoices {
  std::optional<OptionCounts> better;  ///< the best choice below it, if one was met
  double bound = 0;                    ///< no choice is below this, nor below `better`
};

/// Looks for choices within `capacity` of fewer seconds than `below` (HUGE_VAL: any). Starts at the cheapest
/// options under the multipliers and lets one operator after another deviate, those first for which the
/// prices are nearest to indifferent: a list of partial choices, of which those that cannot get below `below`
/// or that another one beats are dropped. Keeps the most promising where lists get long, and stops after
/// about `work` partial choices: then `bound` is what the dropped ones could have reached. Adds to `spent`.
/// REQUIRES: relaxed = relax(table, capacity).
ListedChoices search_lists(const Table& table, std::span<const int64_t> capacity, const Relaxed& relaxed,
                           double below, int64_t work, int64_t& spent);

}  // namespace partita::choose
