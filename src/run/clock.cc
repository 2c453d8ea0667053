#include "run/clock.h"

#include <sys/prctl.h>
#include <time.h>

#include <algorithm>

namespace partita::run {
namespace {

constexpr Picoseconds kPerNanosecond = 1000;
// The kernel wakes a sleeper late, by how much depends on the machine; the last stretch is waited for awake.
// Longer than this would take the core from ranks that have work.
constexpr Picoseconds kLeastAwake = 20'000 * kPerNanosecond, kMostAwake = 250'000 * kPerNanosecond;

}  // namespace

Picoseconds steady_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (static_cast<Picoseconds>(now.tv_sec) * 1'000'000'000 + now.tv_nsec) * kPerNanosecond;
}

void EmulatedClock::reach(Picoseconds time) {
  Picoseconds until = zero_ + time;
  if (until - steady_now() > awake_) {
    int64_t nanoseconds = (until - awake_) / kPerNanosecond;
    timespec at{.tv_sec = nanoseconds / 1'000'000'000, .tv_nsec = nanoseconds % 1'000'000'000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) != 0) continue;
    // Twice what it was late this time, or a little less than before.
    Picoseconds late = steady_now() - nanoseconds * kPerNanosecond;
    awake_ = std::clamp(std::max(2 * late, awake_ - awake_ / 16), kLeastAwake, kMostAwake);
  }
  while (steady_now() < until) continue;
}

void EmulatedClock::start(Picoseconds zero) {
  zero_ = zero;
  if (awake_ == 0) awake_ = kLeastAwake;
  // By default the kernel may wake a thread 50 us late to save power.
  prctl(PR_SET_TIMERSLACK, 1);
}

std::unique_ptr<Clock> make_clock(ClockKind kind) {
  if (kind == ClockKind::kVirtual) return std::make_unique<VirtualClock>();
  if (kind == ClockKind::kEmulated) return std::make_unique<EmulatedClock>();
  return std::make_unique<RealClock>();
}

}  // namespace partita::run
