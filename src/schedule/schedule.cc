#include "schedule/schedule.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/names.h"
#include "schedule/rows.h"

namespace partita::schedule {
namespace {

struct Row {
  std::string_view name;
  Schedule (*make)(const ScheduleParams&);
};

constexpr Row kRows[] = {
    {"gpipe", gpipe},
    {"1f1b", one_f_one_b},
    {"eager-1f1b", eager_one_f_one_b},
    {"interleaved", interleaved},
    {"looped-bfs", looped_bfs},
    {"chimera", chimera},
    {"bitpipe", bitpipe},
    {"wave", wave},
    {"zb-h1", zb_h1},
    {"zb-h2", zb_h2},
    {"zb-v", zb_v},
    {"interleaved-zb", interleaved_zb},
    {"v-half", v_half},
    {"v-min", v_min},
    {"dualpipe", dualpipe},
    {"dualpipev", dualpipev},
    {"3f1b", three_f_one_b},
    {"interlaced", interlaced},
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

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const Row& row : kRows) names.emplace_back(row.name);
  return names;
}

Schedule make_schedule(std::string_view name, const ScheduleParams& params) {
  for (const Row& row : kRows) {
    if (row.name != name) continue;
    check_params(name, params);
    return row.make(params);
  }
  input_error("schedule: unknown name '{}'{}", name, did_you_mean(name, schedule_names()));
}

std::string_view letter(StepKind kind) {
  constexpr std::string_view kLetters[kStepKinds] = {"F", "B", "I", "W"};
  return kLetters[int(kind)];
}

std::string show(const Step& step) {
  return fmt::format("{}{}{}", step.stage, letter(step.kind), step.microbatch);
}

}  // namespace partita::schedule
