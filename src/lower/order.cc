#include <algorithm>
#include <set>

#include "base/error.h"
#include "lower/lower.h"
#include "schedule/csv.h"
#include "schedule/evaluate.h"

namespace partita::lower {
namespace {

Schedule schedule_of(const Plan& plan, const Sites& sites) {
  if (!plan.order.empty()) return parse_csv(fmt::format("{}\n", fmt::join(plan.order, "\n")), "plan: order");
  auto apart = std::count_if(plan.stages.begin(), plan.stages.end(),
                             [&](const Stage& stage) { return !plan.spans(stage); });
  int chunks = static_cast<int>(apart) / sites.count();
  return make_schedule(plan.schedule, {.devices = sites.count(),
                                       .microbatches = static_cast<int>(plan.microbatches),
                                       .chunks = chunks > 1 ? chunks : 0});
}

void check_size(const Schedule& schedule, const Plan& plan, const Sites& sites) {
  if (schedule.streams != sites.streams)
    input_error(
        "plan: schedule {} keeps every stage {} times, one for each direction, the plan {} times; give "
        "its stages copies",
        plan.schedule, schedule.streams, sites.streams);
  if (schedule.stages != static_cast<int>(plan.stages.size()) || schedule.devices != sites.count())
    input_error(
        "plan: schedule {} has {} stages on {} devices, the plan {} on {}; try another schedule, or give "
        "every stage devices of its own",
        plan.schedule, schedule.stages, schedule.devices, plan.stages.size(), sites.count());
  if (schedule.microbatches != plan.microbatches)
    input_error("plan: order: has {} micro-batches, the plan {}", schedule.microbatches, plan.microbatches);
  if (auto faults = check(schedule); !faults.empty()) input_error("plan: order: {}", faults.front());
}

// The stages of a device of the schedule are the stages of one site.
std::vector<int> devices_of_sites(const Schedule& schedule, const Plan& plan, const Sites& sites) {
  std::vector<int> device(sites.count(), -1);
  for (int k = 0; k < schedule.stages * schedule.streams; ++k) {
    int stage = k % schedule.stages, stream = k / schedule.stages;
    bool spread = schedule.devices_of(stage, stream).size() > 1;
    if (schedule.devices > 1 && spread != sites.spans(stage))
      input_error("plan: stages[{}]: schedule {} runs it on {}, the plan on {}; give it those devices", stage,
                  plan.schedule, spread ? "all devices at once" : "one device",
                  spread ? "one stage's" : "the devices of all stages");
    if (sites.spans(stage)) continue;
    int here = schedule.device_of(stage, stream);
    int& known = device[sites.of(stage, stream)];
    bool taken = known < 0 && std::find(device.begin(), device.end(), here) != device.end();
    if (taken || (known >= 0 && known != here))
      input_error(
          "plan: stages[{}]: schedule {} puts it with {} of device {}, the plan on devices [{}]; give "
          "stages of one device the same devices",
          stage, plan.schedule, schedule.stages / schedule.devices, here,
          fmt::join(plan.stages[stage].devices, ","));
    known = here;
  }
  return device;
}

}  // namespace

int64_t Ordered::start(const Segment& segment, int microbatch) const {
  if (segment == kEpilogue) return kEnd - 1;
  auto found = starts.find(segment);
  CHECK(found != starts.end());
  return found->second[microbatch];
}

int Ordered::stream_of(int microbatch) const {
  for (const auto& [segment, at] : starts)
    if (at[microbatch] != kNever) return segment.stream;
  return 0;
}

bool Ordered::apart() const {
  for (const std::vector<Step>& steps : schedule.order)
    for (const Step& step : steps)
      if (step.kind == StepKind::kWeightGrad) return true;
  return false;
}

Ordered order(const Partitioned& parts, const Plan& plan) {
  Ordered out{.parts = parts, .sites = sites_of(plan)};
  out.schedule = schedule_of(plan, out.sites);
  check_size(out.schedule, plan, out.sites);
  out.device_of_site = devices_of_sites(out.schedule, plan, out.sites);
  Evaluation run = evaluate(out.schedule, uniform_costs({}, 0, out.schedule.stages));
  if (run.deadlock)
    input_error("plan: order: deadlocks: {}, which waits for the first", fmt::join(run.cycle, " waits for "));
  for (size_t device = 0; device < out.schedule.order.size(); ++device)
    for (size_t k = 0; k < out.schedule.order[device].size(); ++k) {
      const Step& step = out.schedule.order[device][k];
      for (const Segment& segment : segments_of(step)) {
        std::vector<int64_t>& starts = out.starts[segment];
        starts.resize(plan.microbatches, Ordered::kNever);
        starts[step.microbatch] = run.start[device][k];
      }
    }
  return out;
}

}  // namespace partita::lower
