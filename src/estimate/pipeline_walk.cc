#include "estimate/pipeline_walk.h"

#include <algorithm>

#include "base/error.h"

namespace partita::estimate {
namespace {

/// A schedule's steps in an order in which each comes after those it waits for.
class EndWalk {
 public:
  EndWalk(const Schedule& schedule, const std::vector<StageSeconds>& stages)
      : schedule_(schedule),
        stages_(stages),
        now_(schedule.devices),
        open_(schedule.devices),
        next_(schedule.devices),
        done_(static_cast<size_t>(schedule.stages) * schedule.microbatches * kStepKinds, -1) {}

  std::vector<Seconds> run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (int d = 0; d < schedule_.devices; ++d)
        while (next_[d] < schedule_.order[d].size() && step(d, schedule_.order[d][next_[d]])) {
          ++next_[d];
          moved = true;
        }
    }
    for (int d = 0; d < schedule_.devices; ++d) CHECK_EQ(next_[d], schedule_.order[d].size());
    return now_;
  }

 private:
  Seconds& done(StepKind kind, int stage, int microbatch) {
    size_t of_stage = static_cast<size_t>(stage) * schedule_.microbatches + microbatch;
    return done_[of_stage * kStepKinds + static_cast<size_t>(kind)];
  }

  Seconds backward_done(int stage, int microbatch) {
    return std::max(done(StepKind::kBackward, stage, microbatch),
                    done(StepKind::kInputGrad, stage, microbatch));
  }

  /// When a step can start that takes what `from` made; -1: not there yet. A receive is open since the
  /// receiving step before it was next.
  Seconds arrival(int d, Seconds made, int from, int to) {
    if (made < 0) return -1;
    if (schedule_.device_of(from) == schedule_.device_of(to)) return std::max(made, now_[d]);
    Seconds arrived = std::max(made, open_[d]) + stages_[std::min(from, to)].hop;
    open_[d] = now_[d];
    return std::max(arrived, now_[d]);
  }

  bool step(int d, const Step& s) {
    Seconds start = now_[d];
    if (s.kind == StepKind::kForward && s.stage > 0)
      start = arrival(d, done(StepKind::kForward, s.stage - 1, s.microbatch), s.stage - 1, s.stage);
    if (s.kind == StepKind::kBackward || s.kind == StepKind::kInputGrad) {
      if (done(StepKind::kForward, s.stage, s.microbatch) < 0) return false;
      if (s.stage + 1 < schedule_.stages)
        start = arrival(d, backward_done(s.stage + 1, s.microbatch), s.stage + 1, s.stage);
    }
    if (start < 0) return false;
    now_[d] = done(s.kind, s.stage, s.microbatch) = start + stages_[s.stage].of(s.kind);
    return true;
  }

  const Schedule& schedule_;
  const std::vector<StageSeconds>& stages_;
  std::vector<Seconds> now_, open_;
  std::vector<size_t> next_;
  std::vector<Seconds> done_;
};

/// Activations live until weight gradients are done.
bool ends_life(StepKind kind) { return kind == StepKind::kBackward || kind == StepKind::kWeightGrad; }

}  // namespace

Seconds StageSeconds::of(StepKind kind) const {
  if (kind == StepKind::kForward) return forward;
  if (kind == StepKind::kInputGrad) return input_grad;
  return kind == StepKind::kWeightGrad ? weight_grad : input_grad + weight_grad;
}

std::vector<Seconds> device_ends(const Schedule& schedule, const std::vector<StageSeconds>& stages) {
  return EndWalk(schedule, stages).run();
}

std::vector<Bytes> device_peaks(const Schedule& schedule, const std::vector<StageBytes>& stages) {
  std::vector<Bytes> peaks;
  for (const std::vector<Step>& steps : schedule.order) {
    Bytes held = 0, peak = 0;
    for (const Step& step : steps) {
      const StageBytes& stage = stages[step.stage];
      if (step.kind == StepKind::kForward) {
        peak = std::max(peak, held + stage.forward_peak);
        held += stage.saved;
      } else {
        peak = std::max(peak, held - stage.saved + stage.backward_peak);
        if (ends_life(step.kind)) held -= stage.saved;
      }
    }
    peaks.push_back(peak);
  }
  return peaks;
}

std::vector<int> alive_at_most(const Schedule& schedule) {
  std::vector<int> most(schedule.stages);
  for (int device = 0; device < schedule.devices; ++device) {
    std::vector<int> alive(schedule.stages);
    int all = 0, best = 0;
    for (const Step& step : schedule.order[device]) {
      int change = step.kind == StepKind::kForward ? 1 : ends_life(step.kind) ? -1 : 0;
      alive[step.stage] += change;
      all += change;
      if (all <= best) continue;
      best = all;
      for (int s = 0; s < schedule.stages; ++s)
        if (schedule.device_of(s) == device) most[s] = alive[s];
    }
  }
  return most;
}

}  // namespace partita::estimate
