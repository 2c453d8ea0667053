#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "schedule/schedule.h"

namespace partita::schedule {

/// Appends steps to one device's list, micro-batches first in first out for each (kind, stage).
/// A kind that is exhausted, or has nothing pending, is skipped: emit says false.
/// Weight gradients without a stage come from one queue over all stages of the device.
class Emitter {
 public:
  Emitter(std::vector<Step>& list, int microbatches) : list_(list), microbatches_(microbatches) {}

  bool forward(int stage) { return emit(StepKind::kForward, stage, microbatches_); }
  bool backward(int stage) { return emit(StepKind::kBackward, stage, done(StepKind::kForward, stage)); }
  bool input_grad(int stage) {
    if (!emit(StepKind::kInputGrad, stage, done(StepKind::kForward, stage))) return false;
    pending_.push_back(list_.back());
    return true;
  }
  /// The oldest pending weight gradient of any stage.
  bool weight_grad() {
    if (pending_.empty()) return false;
    return weight_grad_of(pending_.begin());
  }
  /// The oldest pending weight gradient of `stage`.
  bool weight_grad(int stage) {
    auto at = std::find_if(pending_.begin(), pending_.end(), [&](const Step& s) { return s.stage == stage; });
    return at != pending_.end() && weight_grad_of(at);
  }
  int pending_weight_grads() const { return int(pending_.size()); }
  int done(StepKind kind, int stage) const {
    return size_t(stage) < done_.size() ? done_[stage][int(kind)] : 0;
  }

 private:
  bool emit(StepKind kind, int stage, int limit) {
    if (size_t(stage) >= done_.size()) done_.resize(stage + 1);
    int& count = done_[stage][int(kind)];
    if (count >= limit) return false;
    list_.push_back({kind, stage, count++});
    return true;
  }
  bool weight_grad_of(std::vector<Step>::iterator at) {
    Step step = *at;
    step.kind = StepKind::kWeightGrad;
    pending_.erase(at);
    list_.push_back(step);
    return true;
  }

  std::vector<Step>& list_;
  int microbatches_;
  std::vector<std::array<int, kStepKinds>> done_;
  std::vector<Step> pending_;
};

}  // namespace partita::schedule
