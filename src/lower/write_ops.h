#pragma once

#include <vector>

#include "lower/draft.h"

namespace partita::lower {

/// Writes one op at a place: what it reads is wanted (supply.h), what it makes is offered. Outside of a loop
/// its results are settled: reduced where each micro-batch does so, added to their sum over micro-batches.
/// The values it makes; -1 for an output PyTorch leaves out.
std::vector<int> write_op(Draft& draft, const Place& place, size_t op);

/// Writes ops of a loop once for each of its pieces. What others read is added up piece by piece, or joined
/// at the end, and settled. REQUIRES: `place` is outside of every loop; `ops` ascend.
void write_loop(Draft& draft, const Place& place, int loop, const std::vector<size_t>& ops);

}  // namespace partita::lower
