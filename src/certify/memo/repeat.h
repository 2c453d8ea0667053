#pragma once

#include <vector>

#include "program/program.h"

namespace partita::certify {

/// How a body can be done again without looking at each instruction. What it adds to sums that last longer
/// than the micro-batch is another thing each time: those instructions are always looked at. All others make
/// the same of the same, as long as they do not touch those sums.
struct Repeat {
  bool possible = false;
  bool only_adds = false;       // to sums: each time one value to one sum, in place
  std::vector<Slot> fixed;      // outside slots that are nobody's lasting sum
  std::vector<Slot> sums;       // rank slots that it changes
  std::vector<int32_t> adding;  // instructions that touch them
  std::vector<int32_t> stops;   // collectives, ascending
  bool is_sum(Slot slot) const;
  bool adds(int32_t instr) const;
};
Repeat repeat_of(const Body& body);

}  // namespace partita::certify
