#pragma once

#include <string_view>
#include <vector>

#include "schedule/schedule.h"

namespace partita::schedule {

/// Device of each stage, for one stream. With P devices and v stages each:
enum class Placement {
  kLinear,         ///< v = 1: stage s on device s
  kLoop,           ///< s mod P: 0 1 2 3 0 1 2 3
  kZigzag,         ///< there and back: 0 1 2 3 3 2 1 0 0 1 2 3 ...; with v = 2 the V of zero-bubble papers
  kBidirectional,  ///< two streams: a loop, and its mirror image with the other half of the micro-batches
};

/// Devices of stages 0 .. devices * chunks - 1, of the first stream. REQUIRES: kLinear has chunks == 1.
std::vector<int> place(Placement placement, int devices, int chunks);

/// "linear", "loop", "v", "zigzag", "bidirectional"; InputError names `where` otherwise.
Placement parse_placement(std::string_view name, std::string_view where);

/// "linear", "loop", "zigzag" or "bidirectional".
std::string_view placement_name(Placement placement);

/// A schedule on `placement` with empty orders, for a row to fill. Throws InputError when two streams cannot
/// share the micro-batches equally.
Schedule blank(std::string_view name, Placement placement, const ScheduleParams& params, int chunks);

}  // namespace partita::schedule
