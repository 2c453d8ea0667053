#include <algorithm>

#include "base/error.h"
#include "schedule/emitter.h"
#include "schedule/list_schedule.h"
#include "schedule/placement.h"
#include "schedule/rows.h"

namespace partita::schedule {
namespace {

int waves_of(const ScheduleParams& params) {
  if (params.waves) return params.waves;
  if (params.chunks % 2)
    input_error("schedule wave: {} chunks a device; a wave goes there and back, so use an even number",
                params.chunks);
  return params.chunks ? params.chunks / 2 : 1;
}

// Steps a device has yet to emit, in the order of the paper: stages by chunk, micro-batches first in first
// out.
class Leg {
 public:
  Leg(std::vector<int> stages, int microbatches) : stages_(std::move(stages)), microbatches_(microbatches) {}
  bool empty() const { return at_ == stages_.size() * microbatches_; }
  int stage() const { return stages_[at_ / microbatches_]; }
  void pop() { ++at_; }

 private:
  std::vector<int> stages_;
  int microbatches_;
  size_t at_ = 0;
};

// Device r of a wave over `m` micro-batches. Down legs go from device 0 to P-1, up legs back.
void wave_list(std::vector<Step>& list, int P, int W, int m, int r) {
  Emitter emit(list, m);
  auto stage_of = [&](int chunk) { return chunk * P + (chunk % 2 ? P - 1 - r : r); };
  std::vector<int> down, up;
  for (int w = 0; w < W; ++w) down.push_back(stage_of(2 * w)), up.push_back(stage_of(2 * (W - 1 - w) + 1));
  Leg forwards(down, m), backwards(up, m);
  auto one_backward = [&] {
    if (!backwards.empty() && emit.backward(backwards.stage())) backwards.pop();
  };
  for (int k = 0; k < std::min(P - r, m); ++k) emit.forward(forwards.stage()), forwards.pop();
  for (int w = 0; w < W; ++w)
    for (int k = 0; k < m; ++k) {
      emit.forward(stage_of(2 * w + 1));
      if (forwards.empty())
        one_backward();
      else
        emit.forward(forwards.stage()), forwards.pop();
    }
  for (int w = W - 1; w >= 0; --w)
    for (int k = 0; k < m; ++k) emit.backward(stage_of(2 * w)), one_backward();
}

// For m > P the plain order lets live chunks grow to 2 W m. Under a cap the same order, or that of waves of P
// micro-batches one after another, only ranks the steps; a list scheduler keeps within the cap.
Schedule capped(const Schedule& plain, int cap, int W) {
  const int P = plain.devices, m = plain.microbatches;
  Costs costs = uniform_costs({.forward = 1, .backward = 2}, 0, plain.stages);
  Flow flow = make_flow(plain, to_ticks(costs, P, plain.stages, m), false, std::vector<int64_t>(P, cap));
  Schedule units = plain;
  for (int r = 0; r < P; ++r) {
    units.order[r].clear();
    for (int first = 0; first < m; first += P) {
      size_t at = units.order[r].size();
      wave_list(units.order[r], P, W, std::min(P, m - first), r);
      for (; at < units.order[r].size(); ++at) units.order[r][at].microbatch += first;
    }
  }
  std::optional<Listed> best;
  for (const Schedule* base : {&plain, static_cast<const Schedule*>(&units)}) {
    FlowOrder order = to_order(flow, *base);
    if (base == &plain && within_caps(flow, order)) return plain;
    Listed timed = retime(flow, order);
    for (double patience : {0.0, 1.0}) {
      std::optional<Listed> listed = list_schedule(flow, {starts_of(flow, timed), patience});
      if (listed && (!best || listed->makespan < best->makespan)) best = std::move(listed);
    }
    if (within_caps(flow, order) && best && timed.makespan < best->makespan) best = timed;
  }
  if (!best)
    input_error(
        "schedule wave: a cap of {} chunks holds no micro-batch; a device has {} chunks, so use {} or more",
        cap, 2 * W, 2 * W);
  return to_schedule(flow, best->order, plain);
}

}  // namespace

// device 0: F0 F1 -- -- f0 -- f1 b0 ...     capital: down leg, stages 0 1 | 4 5 ...;  small: up leg, 3 2 | 7
// 6 ... device 1: -- F0 f0 F1 f1 b0 B0 b1 B1     (P = 2, m = 2, W = 1) Hanayo (arXiv 2308.15762): the model
// goes W times there and back over the devices, turns are local. Makespan 3 m + 2 (P-1) / W at F = 1, B = 2;
// peak at m = P is 2 W P - (P-1) + r chunks.
Schedule wave(const ScheduleParams& params) {
  const int P = params.devices, W = waves_of(params), m = params.microbatches;
  Schedule schedule = blank("wave", Placement::kZigzag, params, 2 * W);
  for (int r = 0; r < P; ++r) wave_list(schedule.order[r], P, W, m, r);
  return params.cap ? capped(schedule, params.cap, W) : schedule;
}

namespace {

// Two streams of half the micro-batches each, on twice the devices: devices r and D-1-r both run wave list r;
// on r even chunks work for stream a and odd ones for b, on D-1-r the reverse. Units of D micro-batches
// follow each other, as Chimera concatenates them.
Schedule unfold(const char* name, const ScheduleParams& params, int W) {
  const int D = params.devices, P = D / 2, N = params.microbatches;
  if (D % 2 || N % 2)
    input_error("schedule {}: {} devices and {} micro-batches; both must be even, half of them go each way",
                name, D, N);
  Schedule schedule{.name = name, .devices = D, .stages = 2 * W * P, .microbatches = N, .streams = 2};
  std::vector<int> folded = place(Placement::kZigzag, P, 2 * W);
  for (int stream = 0; stream < 2; ++stream)
    for (int stage = 0; stage < schedule.stages; ++stage) {
      bool near = (stage / P) % 2 == stream;
      schedule.placement.push_back({near ? folded[stage] : D - 1 - folded[stage]});
    }
  schedule.order.resize(D);
  for (int device = 0; device < D; ++device)
    for (int first = 0; first < N / 2; first += P) {
      std::vector<Step> unit;
      wave_list(unit, P, W, std::min(P, N / 2 - first), std::min(device, D - 1 - device));
      for (Step step : unit) {
        step.stream = ((step.stage / P) % 2 == 0) == (device < P) ? 0 : 1;
        step.microbatch += first + step.stream * (N / 2);
        schedule.order[device].push_back(step);
      }
    }
  return schedule;
}

}  // namespace

// device 0: F0 F1 -- f0 -- f1 b0 ...      capital: stream a, stages 0..D-1 from device 0
// device 3: f0 f1 -- F0 -- F1 B0 ...      small: stream b, from device D-1                      (D = 4)
// Chimera: two mirrored pipelines; equal to two copies of wave W = 1 on half the devices.
Schedule chimera(const ScheduleParams& params) { return unfold("chimera", params, 1); }

// BitPipe: two mirrored pipelines of two waves; half the bubble of Chimera, twice the messages.
// device 0: F0 F1 f0 f1 F0' F1' ...       primes: the second time over the devices
// device 3: f0 f1 F0 F1 f0' f1' ...
Schedule bitpipe(const ScheduleParams& params) { return unfold("bitpipe", params, 2); }

}  // namespace partita::schedule
