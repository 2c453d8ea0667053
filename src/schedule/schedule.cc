#include "schedule/schedule.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/names.h"
#include "schedule/rows.h"

namespace partita::schedule {
namespace {

constexpr ScheduleRow kRows[] = {
    {.name = "gpipe", .make = gpipe, .planned = 2, .least_microbatches = 2, .outdone = true},
    {.name = "1f1b", .make = one_f_one_b, .planned = 1, .least_microbatches = 1},
    {.name = "eager-1f1b", .make = eager_one_f_one_b},
    {.name = "interleaved", .make = interleaved, .planned = 3, .chunks = {2, 3, 4, 6}, .compared = {2, 4}},
    {.name = "looped-bfs", .make = looped_bfs, .compared = {2}},
    {.name = "chimera", .make = chimera, .streams = 2},
    {.name = "bitpipe", .make = bitpipe, .streams = 2},
    {.name = "wave",
     .make = wave,
     .planned = 4,
     .chunks = {2, 4},
     .in_waves = true,
     .obeys_cap = true,
     .compared = {2, 4, 8}},
    {.name = "zb-h1", .make = zb_h1, .planned = 5, .splits_weight_gradients = true},
    {.name = "zb-h2", .make = zb_h2, .splits_weight_gradients = true},
    {.name = "zb-v", .make = zb_v, .planned = 6, .chunks = {2}, .splits_weight_gradients = true},
    {.name = "interleaved-zb", .make = interleaved_zb, .splits_weight_gradients = true, .compared = {2}},
    {.name = "v-half", .make = v_half, .splits_weight_gradients = true},
    {.name = "v-min", .make = v_min, .splits_weight_gradients = true},
    {.name = "dualpipe", .make = dualpipe, .splits_weight_gradients = true, .streams = 2},
    {.name = "dualpipev", .make = dualpipev, .splits_weight_gradients = true},
    {.name = "3f1b", .make = three_f_one_b, .planned = 8, .passes = 3},
    {.name = "interlaced", .make = interlaced, .planned = 7, .on_all_devices = true},
};

constexpr int kMaxDevices = 4096, kMaxMicrobatches = 1 << 20;
constexpr int64_t kMaxSteps = 20'000'000;

void check_params(std::string_view name, const ScheduleParams& params) {
  auto within = [&](const char* what, int value, int low, int high) {
    if (value < low || value > high)
      input_error("schedule {}: {} {}; needs {} to {}", name, value, what, low, high);
  };
  within("devices", params.devices, 1, kMaxDevices);
  within("micro-batches", params.microbatches, 1, kMaxMicrobatches);
  within("chunks", params.chunks, 0, 1024);
  within("waves", params.waves, 0, 512);
  within("micro-batches a group", params.group, 0, kMaxMicrobatches);
  within("live chunks as a cap", params.cap, 0, INT32_MAX);
  int64_t chunks = std::max({params.chunks, 2 * params.waves, 2});
  if (int64_t(params.devices) * params.microbatches * chunks * 3 > kMaxSteps)
    input_error("schedule {}: more than {} steps; use fewer micro-batches or devices", name, kMaxSteps);
}

}  // namespace

std::span<const ScheduleRow> schedule_rows() { return kRows; }

std::vector<const ScheduleRow*> planned_schedules() {
  std::vector<const ScheduleRow*> rows;
  for (const ScheduleRow& row : kRows)
    if (row.planned > 0) rows.push_back(&row);
  std::sort(rows.begin(), rows.end(),
            [](const ScheduleRow* a, const ScheduleRow* b) { return a->planned < b->planned; });
  return rows;
}

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const ScheduleRow& row : kRows) names.emplace_back(row.name);
  return names;
}

const ScheduleRow& schedule_row(std::string_view name) {
  for (const ScheduleRow& row : kRows)
    if (row.name == name) return row;
  input_error("schedule: unknown name '{}'{}", name, did_you_mean(name, schedule_names()));
}

Schedule make_schedule(std::string_view name, const ScheduleParams& params) {
  const ScheduleRow& row = schedule_row(name);
  check_params(name, params);
  return row.make(params);
}

std::string_view letter(StepKind kind) {
  constexpr std::string_view kLetters[kStepKinds] = {"F", "B", "I", "W"};
  return kLetters[int(kind)];
}

std::string show(const Step& step) {
  return fmt::format("{}{}{}", step.stage, letter(step.kind), step.microbatch);
}

}  // namespace partita::schedule
