#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/units.h"

namespace partita::search {

/// How a search goes: what it is doing, how much of that is done and the best so far.
struct Progress {
  std::string phase;          // "estimating recipes"
  int64_t done = 0, all = 0;  // of the phase; all 0: not known how many
  Seconds best = 0;           // of a step; 0: none yet
};

/// May be called by several threads at once.
using ShowProgress = std::function<void(const Progress&)>;

/// Shows phases of one of several searches: "batch 8: estimating recipes". Nothing where `show` is nothing.
ShowProgress with_prefix(const ShowProgress& show, std::string prefix);

}  // namespace partita::search
