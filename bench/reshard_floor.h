#pragma once

#include "reshard/problem.h"

namespace partita::reshard {

/// Elements that the busiest device must send or receive in every way with the fewest bytes: over all sets of
/// devices, what only they can send (or receive), divided by their number (Hall's condition). It may be out
/// of reach. REQUIRES: at most 16 devices.
int64_t busiest_floor(const Problem& problem);

}  // namespace partita::reshard
