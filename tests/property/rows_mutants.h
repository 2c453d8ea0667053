#pragma once

#include <map>

#include "rows_truth.h"

namespace partita::run {

/// Claims that differ from the true one in one thing, by what was changed: an equality or place dropped, two
/// letters swapped (where sizes allow), a dimension frozen or set free, a reduced one dropped or added, a
/// linear set, addend or read dropped or added, an attribute left as it is in the whole, the view flag
/// flipped.
struct Mutants {
  std::map<std::string, Claim> wrong;
  std::map<std::string, int> equivalent;  // changes that change nothing, by the reason
};
Mutants mutants_of(const Instance& instance, const Claim& claim, const LinearSets& excused);

/// A claim whose attributes throw where a part has another value for whole number `i` than the whole op.
Claim changes_attribute(const Claim& claim, size_t i);
/// Another value for whole number `i` among the arguments of the whole op gives another result, or none.
bool is_attribute_read(const Instance& instance, size_t i);

}  // namespace partita::run
