#include <algorithm>
#include <tuple>

#include "schedule/evaluate.h"
#include "schedule/placement.h"
#include "schedule/rows.h"

namespace partita::schedule {
namespace {

// A step of all devices, to be put before whatever they start at `time` or later in plain 1f1b.
struct Barrier {
  int64_t time;
  int rank;  // order among barriers of one moment
  Step step;
};

std::vector<Barrier> barriers(const Schedule& plain, const Evaluation& run) {
  std::vector<Barrier> all;
  const int last = plain.devices - 1, head = plain.devices + 1;
  auto of = [&](int device, StepKind kind, auto&& visit) {
    for (size_t i = 0; i < plain.order[device].size(); ++i)
      if (const Step& step = plain.order[device][i]; step.kind == kind)
        visit(run.start[device][i], run.end[device][i], step.microbatch);
  };
  of(0, StepKind::kForward, [&](int64_t start, int64_t, int k) {
    all.push_back({start, 3, {StepKind::kForward, 0, k}});
  });
  of(last, StepKind::kForward, [&](int64_t, int64_t end, int k) {
    all.push_back({end, 0, {StepKind::kForward, head, k}});
    all.push_back({end, 1, {StepKind::kBackward, head, k}});
  });
  of(0, StepKind::kBackward, [&](int64_t, int64_t end, int k) {
    all.push_back({end, 2, {StepKind::kBackward, 0, k}});
  });
  std::sort(all.begin(), all.end(), [](const Barrier& a, const Barrier& b) {
    return std::tie(a.time, a.rank, a.step) < std::tie(b.time, b.rank, b.step);
  });
  return all;
}

}  // namespace

// device 0: E0 F0 E1 F1 H0 h0 ...  E, H: embedding and head, split over ALL devices; e, h: their backwards
// device 1: E0 -- E1 F0 H0 h0 B0 ...
// Interlaced pipeline (SuperScaler): stages 1..P are 1f1b, stage 0 and P+1 run on every device at once, just
// before the step that reads them, so that a large vocabulary loads no single device.
Schedule interlaced(const ScheduleParams& params) {
  Schedule plain = one_f_one_b(params);
  Costs unit = uniform_costs({.forward = 1, .backward = 2}, 0, plain.stages);
  Evaluation run = evaluate(plain, unit);
  std::vector<Barrier> all = barriers(plain, run);

  Schedule schedule{.name = "interlaced",
                    .devices = params.devices,
                    .stages = params.devices + 2,
                    .microbatches = params.microbatches};
  std::vector<int> everyone(params.devices);
  for (int device = 0; device < params.devices; ++device) everyone[device] = device;
  schedule.placement.push_back(everyone);
  for (int device = 0; device < params.devices; ++device) schedule.placement.push_back({device});
  schedule.placement.push_back(everyone);
  schedule.order.resize(params.devices);
  for (int device = 0; device < params.devices; ++device) {
    size_t next = 0;
    for (size_t i = 0; i < plain.order[device].size(); ++i) {
      while (next < all.size() && all[next].time <= run.start[device][i])
        schedule.order[device].push_back(all[next++].step);
      Step step = plain.order[device][i];
      ++step.stage;
      schedule.order[device].push_back(step);
    }
    while (next < all.size()) schedule.order[device].push_back(all[next++].step);
  }
  return schedule;
}

}  // namespace partita::schedule
