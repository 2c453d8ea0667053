#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/namespaces.h"

namespace partita::schedule {

/// What a step computes. kBackward is the fused one: input gradient and weight gradient together.
enum class StepKind : uint8_t { kForward, kBackward, kInputGrad, kWeightGrad };

inline constexpr int kStepKinds = 4;

/// One cell of a pipeline diagram: `kind` of `stage` for `microbatch`.
/// Micro-batches are numbered over the whole training step; a stream is a direction through the devices
/// (bidirectional schedules have two) and every micro-batch belongs to one.
struct Step {
  StepKind kind = StepKind::kForward;
  int stage = 0;
  int microbatch = 0;
  int stream = 0;
  /// This step and the next of the list are one overlapped block: both start and both end together.
  bool with_next = false;

  auto operator<=>(const Step&) const = default;
};

/// A pipeline schedule: who holds which stage, and the order in which every device runs its steps.
/// Example, 1f1b on 2 devices with 2 micro-batches:
/// `order[0] = F0 F1 B0 B1` of stage 0, `order[1] = F0 B0 F1 B1` of stage 1.
struct Schedule {
  std::string name;
  int devices = 0;
  int stages = 0;
  int microbatches = 0;
  int streams = 1;
  /// How often a micro-batch runs forward through the same weights (3f1b: 3). Stages are then numbered
  /// pass after pass, and only those of the last pass have a backward.
  int passes = 1;
  /// Devices of (stage, stream), at [stream * stages + stage]. Usually one; a stage on several devices runs
  /// on all of them at the same time (interlaced embeddings and heads).
  std::vector<std::vector<int>> placement;
  /// Steps of each device, first to last.
  std::vector<std::vector<Step>> order;

  const std::vector<int>& devices_of(int stage, int stream) const {
    return placement[stream * stages + stage];
  }
  /// The device of a stage that has one.
  int device_of(int stage, int stream = 0) const { return devices_of(stage, stream).front(); }
  /// Stages from this one on have a backward.
  int first_trained_stage() const { return stages / passes * (passes - 1); }

  bool operator==(const Schedule&) const = default;
};

/// What a named schedule is made from. Zero means the schedule's own default.
struct ScheduleParams {
  int devices = 1;
  int microbatches = 1;
  int chunks = 0;  ///< stages per device (interleaved, looped-bfs, interleaved-zb, wave)
  int waves = 0;   ///< wave: stages per device are 2 * waves; 0: as `chunks` says
  int group = 0;   ///< interleaved: micro-batches per group, default `devices`
  int cap = 0;     ///< wave, 3f1b: at most so many live (stage, micro-batch) pairs on a device
};

/// A schedule by name, and all that others need to know of it: no name of one stands outside of this folder.
struct ScheduleRow {
  std::string_view name;
  Schedule (*make)(const ScheduleParams&);
  int planned = 0;  ///< place among those that the planner considers; 0: it does not
  /// Stages per device that the planner considers, as far as they are above 0; none: the schedule's own.
  std::array<int, 4> chunks = {};
  /// Micro-batches with which the planner considers it; 0: as many as devices.
  int least_microbatches = 0;
  /// Another one takes as long and holds less: only where it is asked for.
  bool outdone = false;
  /// A device has two stages for every wave.
  bool in_waves = false;
  /// Made anew for a cap on what a device holds.
  bool obeys_cap = false;
  bool splits_weight_gradients = false;
  int streams = 1;  ///< directions through the devices
  int passes = 1;   ///< through the same weights
  /// Embedding and head are stages on all devices.
  bool on_all_devices = false;
  /// Stages per device with which a table of all schedules shows it; none: its own.
  std::array<int, 3> compared = {};

  /// Its stages are not one line through the devices: recipes write it, with a name of its own.
  bool has_own_recipe() const { return passes > 1 || on_all_devices; }
  /// The first micro-batch goes forward through all devices and the last one back through them, and nothing
  /// of a backward can wait. Only with one stage a device.
  bool fills_and_drains() const { return !has_own_recipe() && !splits_weight_gradients && streams == 1; }
};

/// Every schedule, in the order of the catalogue.
std::span<const ScheduleRow> schedule_rows();
/// Those that the planner considers, in its order.
std::vector<const ScheduleRow*> planned_schedules();
/// Throws InputError that suggests the nearest name.
const ScheduleRow& schedule_row(std::string_view name);

/// What runs where nobody asked for another: as short as any that needs no more memory and no more messages.
inline constexpr std::string_view kPlainSchedule = "1f1b";

/// Makes the schedule `name`. Throws InputError when the name is unknown or the numbers do not suit it.
/// `make_schedule("1f1b", {.devices = 4, .microbatches = 8}).order[3]` is stage 3's F0 B0 F1 B1 ...
Schedule make_schedule(std::string_view name, const ScheduleParams& params);

/// Names of schedule_rows().
std::vector<std::string> schedule_names();

/// What is wrong with a schedule, one sentence each: a step missing, doubled, on a device that does not hold
/// its stage, or out of range. Empty: every micro-batch runs every stage once each way. Says nothing about
/// deadlock; `evaluate` does.
std::vector<std::string> check(const Schedule& schedule);

/// "F", "B", "I" or "W", as in PyTorch's CSV form.
std::string_view letter(StepKind kind);
/// Stage, letter, micro-batch: "2F0".
std::string show(const Step& step);

}  // namespace partita::schedule
