#pragma once

#include <map>

#include "rows_truth.h"

namespace partita {

/// Claims that differ from the given one in one thing, by what was changed: an equality or place dropped, two
/// letters swapped (where sizes allow), a dimension frozen or set free, a reduced one dropped or added, a
/// linear set, addend or read dropped or added, an attribute left as it is in the whole, the view flag
/// flipped. Mutants that allow the same as the original are left out.
std::map<std::string, Claim> mutants_of(const Instance& instance, const Claim& claim,
                                        const LinearSets& excused);

}  // namespace partita
