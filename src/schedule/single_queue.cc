#include <set>
#include <tuple>

#include "schedule/evaluate.h"

namespace partita::schedule {
namespace {

// Which values a device has in its list so far: its own outputs and what it received.
class Sweep {
 public:
  explicit Sweep(const Schedule& schedule)
      : schedule_(schedule), next_(schedule.devices), have_(schedule.devices), queues_(schedule.devices) {
    for (const std::vector<Step>& list : schedule.order)
      for (const Step& step : list)
        if (step.kind == StepKind::kInputGrad) split_.insert({step.stage, step.microbatch});
  }

  QueueOrder run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int device = 0; device < schedule_.devices; ++device) moved |= advance(device);
    }
    return std::move(queues_);
  }

 private:
  using Value = std::tuple<int, int, StepKind>;

  bool advance(int device) {
    if (next_[device] == schedule_.order[device].size()) return false;
    const Step& step = schedule_.order[device][next_[device]];
    if (!ready(device, step)) return false;
    ++next_[device];
    have_[device].insert({step.stage, step.microbatch, step.kind});
    send(device, step);
    return true;
  }

  StepKind gradient(int stage, int microbatch) const {
    return split_.contains({stage, microbatch}) ? StepKind::kInputGrad : StepKind::kBackward;
  }

  bool ready(int device, const Step& step) const {
    auto has = [&](int stage, StepKind kind) {
      return have_[device].contains({stage, step.microbatch, kind});
    };
    if (step.kind == StepKind::kForward) return step.stage == 0 || has(step.stage - 1, StepKind::kForward);
    if (step.kind == StepKind::kWeightGrad) return has(step.stage, StepKind::kInputGrad);
    int after = step.stage + 1;
    return has(step.stage, StepKind::kForward) &&
           (after == schedule_.stages || has(after, gradient(after, step.microbatch)));
  }

  void send(int device, const Step& step) {
    int target = step.kind == StepKind::kForward ? step.stage + 1 : step.stage - 1;
    if (step.kind == StepKind::kWeightGrad || target < 0 || target >= schedule_.stages) return;
    if (step.kind != StepKind::kForward && target < schedule_.first_trained_stage()) return;
    int peer = schedule_.device_of(target, step.stream);
    if (peer == device) return;
    Step producer = step;
    producer.with_next = false;
    queues_[device].push_back({producer, device, peer});
    queues_[peer].push_back({producer, device, peer});
    have_[peer].insert({step.stage, step.microbatch, step.kind});
  }

  const Schedule& schedule_;
  std::vector<size_t> next_;
  std::vector<std::set<Value>> have_;
  std::set<std::pair<int, int>> split_;
  QueueOrder queues_;
};

}  // namespace

QueueOrder single_queue(const Schedule& schedule) { return Sweep(schedule).run(); }

}  // namespace partita::schedule
