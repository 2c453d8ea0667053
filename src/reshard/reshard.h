#pragma once

#include <string>
#include <vector>

#include "base/units.h"
#include "reshard/compose.h"

namespace partita::reshard {

/// How to reshard, and what it costs. Bytes; `bound_*` is what no way can do without.
struct Answer {
  std::vector<Hop> hops;  // none where everything wanted is at home already
  Bytes total_bytes = 0, bound_bytes = 0;
  Bytes max_recv_bytes = 0, max_send_bytes = 0;              // of the busiest device, over all hops
  Bytes cross_group_bytes = 0, bound_cross_group_bytes = 0;  // that leave the innermost groups
  std::vector<Bytes> crossing_bytes, bound_crossing_bytes;   // by level, the widest groups first
  bool proved = true;                                        // bound_bytes is the least; false: less may do
  int launches = 0;                                          // that follow each other on a device
  Seconds seconds = 0,
          least_bytes_seconds = 0;  // with links: of this answer, and of the one with the fewest bytes
};

/// Solves a problem: fewest bytes, then fewest across groups, then the least busy device, then the fewest
/// launches. With links the fastest: the sum over hops of latency times rounds and the busiest device's bytes
/// over bandwidth. Every answer was replayed on cell ids; one that fails is our bug. InputError where the
/// source does not have what is wanted. REQUIRES: pieces lie in the shape.
Answer solve(const Problem& problem);

/// What hops cost: everything of an Answer but its bounds.
Answer sum_up(const Problem& problem, std::vector<Hop> hops);

/// Replays every hop on cell ids; one that fails is our bug.
void check_answer(const Answer& answer);

/// The steps for people: op, ranks in order, bytes, the busiest links.
std::string to_text(const Problem& problem, const Answer& answer);

}  // namespace partita::reshard
