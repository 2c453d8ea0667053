#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "program/program.h"
#include "schedule/schedule.h"

namespace partita::lower {

/// A body of a site: once before the loop, per micro-batch forward and backward of each of its stages, once
/// after the loop. Backward may leave weight gradients, which no other stage waits for, to a segment of their
/// own.
struct Segment {
  using enum BodyPart;
  BodyPart kind = kPrologue;
  int stage = 0;   // of those inside the loop
  int stream = 0;  // the direction of the micro-batches it is for

  bool in_loop() const { return program::in_loop(kind); }
  bool backward() const { return kind == kBackward || kind == kWeight; }

  /// The order in which a micro-batch meets them, weight gradients at once: up the stages, then down.
  auto order() const {
    int step = kind == kForward ? stage : backward() ? -stage : 0;
    return std::tuple(kind == kWeight ? kBackward : kind, stream, step, kind == kWeight);
  }
  bool operator==(const Segment&) const = default;
  auto operator<=>(const Segment& other) const { return order() <=> other.order(); }
};
inline constexpr Segment kPrologue{Segment::kPrologue};
inline constexpr Segment kEpilogue{Segment::kEpilogue};

/// Is `a` over when `b` starts, whatever the schedule (or the same)? When weight gradients run is up to it,
/// and no micro-batch goes in two directions.
inline bool precedes(const Segment& a, const Segment& b) {
  if (a == b) return true;
  if (a.in_loop() && b.in_loop() && a.stream != b.stream) return false;
  return a < b && (a.kind != Segment::kWeight || b == kEpilogue);
}

/// "forward of stage 1", "epilogue".
std::string name_of_segment(const Segment& segment);

/// What a step of a schedule runs: a fused backward includes the weight gradients.
inline std::vector<Segment> segments_of(const Step& step) {
  switch (step.kind) {
    case StepKind::kForward:
      return {{Segment::kForward, step.stage, step.stream}};
    case StepKind::kInputGrad:
      return {{Segment::kBackward, step.stage, step.stream}};
    case StepKind::kWeightGrad:
      return {{Segment::kWeight, step.stage, step.stream}};
    case StepKind::kBackward:
      break;
  }
  return {{Segment::kBackward, step.stage, step.stream}, {Segment::kWeight, step.stage, step.stream}};
}

}  // namespace partita::lower
