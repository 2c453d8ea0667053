#pragma once

#include "layout/reshard/jobs.h"

namespace partita::reshard {

struct SumCost {
  int64_t transfers = 0, bound = 0;  // of one element; bound is less only where the search was cut short
};

/// The fewest transfers that make and spread a sum. REQUIRES: nobody has the value.
SumCost least_sum(const Cells& cells, const ClassWork& work, const Job& job);

}  // namespace partita::reshard
