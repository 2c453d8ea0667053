#pragma once

#include <string>
#include <vector>

#include "prove/prove.h"
#include "run/api.h"

namespace partita::measure {

/// The middle, not the least: a step holds its ops' slower calls too, and the least of each would add up to
/// less. REQUIRES: not empty.
Seconds middle(std::vector<Seconds> values);
Seconds mean(const std::vector<Seconds>& values);

/// A plan to run.
struct PlanTrial {
  std::string name;
  const Model& model;
  HostViews given;  // constants, weights where they should not be drawn each time, a certain batch
  Plan plan;
};

/// A proved plan that is run on rank threads, some steps at a time.
class TimedPlan {
 public:
  /// Steps before the first that counts: until then a step may find that its blocks of memory lie elsewhere
  /// than in the step before, and touches new pages.
  static constexpr size_t kWarmUp = 4;
  /// Steps of a round, at least, and seconds that it should last: what disturbs short steps is as long as it
  /// is for long ones.
  static constexpr size_t kCounted = 2;
  static constexpr Seconds kRound = 0.25;

  /// InputError where it cannot be lowered. `trial.model` must live as long, and what `trial.given` shows.
  explicit TimedPlan(const PlanTrial& trial);
  TimedPlan(const TimedPlan&) = delete;
  TimedPlan& operator=(const TimedPlan&) = delete;

  const std::string& name() const { return name_; }
  const Lowered& lowered() const { return proved_.lowered(); }
  /// All that its ranks hold at most.
  Bytes bytes() const;

  /// Loads it and takes the first steps, unless it is in memory. From now on `clocked` is told what every
  /// instruction takes, in the first steps too.
  void open(const Clocked& clocked = {});
  void close() { next_ = nullptr; }

  /// Takes a round of so many steps; the middle of what they took. REQUIRES: it is open.
  Seconds round(size_t steps = kCounted);
  /// Steps that a round should have, by what they took so far. REQUIRES: it was open.
  size_t steps_of_round() const;

 private:
  std::string name_;
  Proved proved_;
  HostTensors drawn_;  // the batch
  RunRequest request_;
  NextStep next_;
  Seconds last_ = 0;  // of the last step
};

/// Bytes that plans may hold at once beside each other: half of what the machine has free.
Bytes room_for_plans();

/// Seconds of plans that ran in turns, by plan; `rounds`: of each plan what it took in round 0, 1, ...; a
/// plan may stop early. A round in which the machine was slow was slow for all: what counts is the middle of
/// a plan's shares of what those that ran to the end took on average. REQUIRES: at least one round of each.
///
/// Example: {{1, 2}, {2, 4}, {3}} -> {1.5, 3, 4.5}.
std::vector<Seconds> seconds_in_turns(const std::vector<std::vector<Seconds>>& rounds);

}  // namespace partita::measure
