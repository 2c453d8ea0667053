#include "run/clock.h"

#include <sys/prctl.h>
#include <time.h>

namespace partita {
namespace {

constexpr Picoseconds kPerNanosecond = 1000;
// The kernel wakes a sleeper some microseconds late; the last stretch is waited for awake. Longer than this
// would take the core from ranks that have work.
constexpr Picoseconds kAwake = 20'000 * kPerNanosecond;

}  // namespace

Picoseconds steady_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (static_cast<Picoseconds>(now.tv_sec) * 1'000'000'000 + now.tv_nsec) * kPerNanosecond;
}

void EmulatedClock::reach(Picoseconds time) {
  Picoseconds until = zero_ + time;
  if (until - steady_now() > kAwake) {
    int64_t nanoseconds = (until - kAwake) / kPerNanosecond;
    timespec at{.tv_sec = nanoseconds / 1'000'000'000, .tv_nsec = nanoseconds % 1'000'000'000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) != 0) continue;
  }
  while (steady_now() < until) continue;
}

void EmulatedClock::start(Picoseconds zero) {
  zero_ = zero;
  // By default the kernel may wake a thread 50 us late to save power.
  prctl(PR_SET_TIMERSLACK, 1);
}

}  // namespace partita
