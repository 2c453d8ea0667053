#pragma once

#include <string_view>
#include <vector>

#include "schedule/schedule.h"

namespace partita {

/// Device of each stage, for one stream. With P devices and v stages each:
enum class Placement {
  kLinear,  ///< v = 1: stage s on device s
  kLoop,    ///< s mod P: 0 1 2 3 0 1 2 3
  kZigzag,  ///< there and back: 0 1 2 3 3 2 1 0 0 1 2 3 ...; with v = 2 the V of zero-bubble papers
};

/// Devices of stages 0 .. devices * chunks - 1. REQUIRES: kLinear has chunks == 1.
std::vector<int> place(Placement placement, int devices, int chunks);

/// "linear", "loop", "v", "zigzag"; InputError names `where` otherwise.
Placement parse_placement(std::string_view name, std::string_view where);

/// A schedule with one stream on `placement` and empty orders, for a row to fill.
Schedule blank(std::string_view name, Placement placement, const ScheduleParams& params, int chunks);

}  // namespace partita
