#pragma once

#include <vector>

#include "certify/algebra/meaning.h"

namespace partita::certify {

/// What one member of a collective brings: a rank, or a class of ranks with these coordinates, of which the
/// group runs along `axes`.
struct Brought {
  const Instr& instr;
  const Meaning& meaning;
  const std::vector<Interval>& coordinates;
  const std::vector<int>& axes;
};

/// What each member holds after an all-reduce, all-gather, reduce-scatter or all-to-all, in group order.
/// Refused where they do not add up or do not follow each other.
std::vector<Known> collective_of(const Rules& rules, const std::vector<Brought>& members);

}  // namespace partita::certify
