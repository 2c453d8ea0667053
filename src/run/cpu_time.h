#pragma once

#include <time.h>

#include "base/units.h"

namespace partita::run {

/// CPU seconds of the calling thread, so that what else the machine does is left out of a measurement.
inline Seconds cpu_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// What asking for the time costs, which every measurement contains once.
Seconds clock_cost();

}  // namespace partita::run
