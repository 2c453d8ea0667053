#pragma once

#include <string>
#include <vector>

#include "base/units.h"

namespace partita::run {

/// One message or collective between thread ranks.
struct TransferMeasure {
  std::string kind;  // "all_reduce", "all_gather", "reduce_scatter", "send"
  int32_t ranks = 2;
  Bytes bytes =
      0;  // of the whole tensor: what all ranks hold after all_gather, what each brings to the others
  std::vector<Seconds> seconds;  // by round: CPU seconds of the rank that works longest
};

/// Runs every kind `rounds` times with every number of ranks and every size, on ranks that do nothing else.
/// REQUIRES: sizes are multiples of 4 bytes; at least 2 ranks.
std::vector<TransferMeasure> measure_transfers(const std::vector<int32_t>& ranks,
                                               const std::vector<Bytes>& sizes, int rounds);

}  // namespace partita::run
