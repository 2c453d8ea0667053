#pragma once

#include "choose/search.h"

namespace partita::choose {

/// One problem of a sweep.
struct SweepEntry {
  ChoiceAnswer answer;
  Bytes least_bytes = 0;  // where nothing fits
  bool least_proved = true;
  bool solved = false;  // false: its bound already says that it cannot have the most samples per second
};

struct Sweep {
  std::vector<SweepEntry> entries;  // as the problems
  int best = -1;                    // most samples per second; of equal ones the first; -1: nothing fits
};

/// Solves problems for batches of `samples` each until no other can have more samples per second. T is not
/// monotone in the batch, so none is left out but by its bound.
/// REQUIRES: as search_choices; samples above 0.
Sweep sweep_choices(const std::vector<ChoiceProblem>& problems, int64_t work = kChoiceWork);

}  // namespace partita::choose
