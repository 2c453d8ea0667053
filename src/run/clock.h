#pragma once

#include <memory>
#include <string_view>

#include "program/timing.h"

namespace partita::run {

/// What time it is for one rank: one of the four seams of the runtime. Used by the rank's own thread. Times
/// count from the start of the step.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Picoseconds now() = 0;
  /// Comes back when it is `time`, at once where that is past.
  virtual void reach(Picoseconds time) = 0;
  /// The step starts; `zero` is steady_now() at that moment, the same for all ranks.
  virtual void start(Picoseconds zero) = 0;
};

/// Since the machine started.
Picoseconds steady_now();

/// What happens, happens: nothing is waited for.
class RealClock : public Clock {
 public:
  Picoseconds now() override { return steady_now() - zero_; }
  void reach(Picoseconds) override {}
  void start(Picoseconds zero) override { zero_ = zero; }

 private:
  Picoseconds zero_ = 0;
};

/// A number that only `reach` moves: time passes as planned, however fast the machine is.
class VirtualClock : public Clock {
 public:
  Picoseconds now() override { return now_; }
  void reach(Picoseconds time) override { now_ = time > now_ ? time : now_; }
  void start(Picoseconds) override { now_ = 0; }

 private:
  Picoseconds now_ = 0;
};

/// Real time that lets the rank sleep for what a device would take.
class EmulatedClock : public Clock {
 public:
  Picoseconds now() override { return steady_now() - zero_; }
  void reach(Picoseconds time) override;
  void start(Picoseconds zero) override;

 private:
  Picoseconds zero_ = 0;
  Picoseconds awake_ = 0;  // before the end of a sleep
};

enum class ClockKind : uint8_t { kReal, kVirtual, kEmulated };
inline constexpr std::string_view kClockNames[] = {"real", "virtual", "emulated"};
std::unique_ptr<Clock> make_clock(ClockKind kind);

}  // namespace partita::run
