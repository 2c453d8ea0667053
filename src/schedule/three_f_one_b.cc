#include <algorithm>

#include "schedule/list_schedule.h"
#include "schedule/placement.h"
#include "schedule/rows.h"

namespace partita::schedule {
namespace {

constexpr int kPasses = 3;

// Backwards first and then the earlier pass, or forwards first: whichever is shorter. `admitted`
// micro-batches may be under way between their first forward and their last backward; memory of the passes is
// not the point.
Flow admission_flow(const Schedule& shape, int admitted) {
  Costs costs = uniform_costs({.forward = 1, .backward = 2}, 0, shape.stages);
  std::vector<int64_t> cap(shape.devices, INT64_MAX);
  cap[0] = admitted;
  Flow flow = make_flow(shape, to_ticks(costs, shape.devices, shape.stages, shape.microbatches), false, cap);
  for (Flow::Line& line : flow.lines) {
    line.take = line.kind == StepKind::kForward && line.stage == 0;
    line.give = line.kind == StepKind::kBackward && line.stage == shape.first_trained_stage();
  }
  return flow;
}

Policy passes_first(const Flow& flow, int devices, bool backward_first) {
  Policy policy{.patience = 0};
  for (const Flow::Line& line : flow.lines)
    for (int k = 0; k < flow.microbatches; ++k) {
      int pass = line.kind == StepKind::kForward ? line.stage / devices : backward_first ? -1 : kPasses;
      policy.rank.push_back(int64_t(pass) * flow.microbatches + k);
    }
  return policy;
}

}  // namespace

// stage 0: F0 F1 F0' F1' F0" F1" -- B0 -- B1      primes: second and third pass of the same micro-batch
// stage 1: -- F0 F1 F0' F1' F0" B0 F1" B1
// AlphaFold's step (SuperScaler, section 3F1B): three forward passes through the same stages, only the last
// one is differentiated.
Schedule three_f_one_b(const ScheduleParams& params) {
  Schedule shape = blank("3f1b", Placement::kLoop, params, kPasses);
  shape.passes = kPasses;
  Flow flow = admission_flow(shape, params.cap ? params.cap : kPasses * params.devices);
  Listed eager = *list_schedule(flow, passes_first(flow, params.devices, true));
  Listed late = *list_schedule(flow, passes_first(flow, params.devices, false));
  return to_schedule(flow, late.makespan < eager.makespan ? late.order : eager.order, shape);
}

}  // namespace partita::schedule
