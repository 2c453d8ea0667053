#include "schedule/emitter.h"
#include "schedule/placement.h"
#include "schedule/rows.h"

namespace partita::schedule {
namespace {

// Both handcrafted schedules of "Zero Bubble Pipeline Parallelism" (arXiv 2401.10241): `ahead` forwards, then
// input gradients with a forward each while `slack` weight gradients pile up, then all three in turn.
void zero_bubble_list(Emitter emit, int stage, int ahead, int slack, int microbatches) {
  for (int i = 0; i < ahead; ++i) emit.forward(stage);
  emit.input_grad(stage);
  for (int i = 0; i < slack; ++i) {
    emit.forward(stage);
    emit.input_grad(stage);
  }
  for (int i = 0; i < microbatches; ++i) {
    emit.weight_grad(stage);
    emit.forward(stage);
    emit.input_grad(stage);
  }
  while (emit.weight_grad(stage)) {
  }
}

}  // namespace

// stage 0: F0 F1 F2 -- I0 W0 F3 I1 W1 I2 W2 I3 W3
// stage 1: -- F0 F1 I0 F2 I1 W0 F3 I2 W1 I3 W2 W3
// stage 2: -- -- F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3
// ZB-H1 (ZB1P): as many in flight as 1f1b, weight gradients fill a third of its bubble.
Schedule zb_h1(const ScheduleParams& params) {
  Schedule schedule = blank("zb-h1", Placement::kLinear, params, 1);
  for (int r = 0; r < params.devices; ++r)
    zero_bubble_list(Emitter(schedule.order[r], params.microbatches), r, params.devices - r, r,
                     params.microbatches);
  return schedule;
}

// stage 0: F0 F1 F2 -- I0 W0 F3 I1 W1 ...       (P = 2)
// stage 1: -- F0 I0 F1 I1 F2 I2 W0 F3 I3 ...
// ZB-H2 (ZB2P): 2 P - 1 in flight; no bubble inside a device's span, the same makespan with a barrier.
Schedule zb_h2(const ScheduleParams& params) {
  Schedule schedule = blank("zb-h2", Placement::kLinear, params, 1);
  for (int r = 0; r < params.devices; ++r)
    zero_bubble_list(Emitter(schedule.order[r], params.microbatches), r, 2 * (params.devices - r) - 1, 2 * r,
                     params.microbatches);
  return schedule;
}

// device 0: F0 F1 F2 -- f0 i0 w0 F3 I0 W0 f1 i1 w1 ...      capital: stage r, small: stage 2 P - 1 - r
// device 1: -- F0 f0 F1 i0 f1 ...                            (P = 2)
// ZB-V: the last stage sits beside the first, so backwards begin where forwards do. Peak 2 P chunks.
Schedule zb_v(const ScheduleParams& params) {
  Schedule schedule = blank("zb-v", Placement::kZigzag, params, 2);
  const int P = params.devices;
  // The phases need 2 P - 1 micro-batches; with fewer, the surplus ones are made and dropped.
  const int made = std::max(params.microbatches, 2 * P - 1);
  for (int r = 0; r < P; ++r) {
    const int down = r, up = 2 * P - 1 - r;
    std::vector<Step>& list = schedule.order[r];
    Emitter emit(list, made);
    auto repeat = [](int times, auto&& body) {
      for (int i = 0; i < times; ++i) body();
    };
    auto whole = [&](int stage) { emit.forward(stage), emit.input_grad(stage), emit.weight_grad(stage); };
    repeat(2 * (P - r) - 1, [&] { emit.forward(down); });
    repeat(r, [&] { emit.forward(up), emit.forward(down); });
    repeat(P - r, [&] { whole(up); });
    while (emit.done(StepKind::kForward, down) < made || emit.done(StepKind::kForward, up) < made)
      whole(down), whole(up);
    repeat(r, [&] { emit.input_grad(down), emit.input_grad(up); });
    repeat(P - r, [&] { emit.input_grad(down), emit.weight_grad(down); });
    while (emit.weight_grad(up)) {
    }
    while (emit.weight_grad(down)) {
    }
    std::erase_if(list, [&](const Step& step) { return step.microbatch >= params.microbatches; });
  }
  return schedule;
}

}  // namespace partita::schedule
