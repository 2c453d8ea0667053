#pragma once

#include <array>
#include <cmath>

#include "estimate/storing.h"

namespace partita::estimate {

/// What a planner may use beside the products of a recipe.
struct Freedom {
  Bytes memory = 0;  // of each device
  bool recompute = true;
  bool loss_pieces = true;  // head and loss in pieces of the tokens
  bool coshard = true;      // repeated modules in pieces of heads and hidden, computed again
  bool slices = true;       // operators of parameters that ranks keep in pieces, one slice gathered at a time
  std::array<bool, kStorings> storings = {true, true, true, true, true};
  double enough = 0;         // a share of the seconds that choices may be off by
  Seconds below = HUGE_VAL;  // an estimate of so many or more is of no use
};

}  // namespace partita::estimate
