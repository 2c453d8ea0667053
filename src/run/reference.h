#pragma once

#include <memory>

#include "run/api.h"

namespace partita::run {

/// One device that takes a Model's step as it is written: its ops one after another on whole tensors, through
/// torch's dispatcher; the gradients that the Model names, each in memory of its own; torch's
/// clip_grad_norm_; torch::optim. It has no Program and no loss scale: what a Program is compared with must
/// not come from the code that makes Programs or runs them.
///
/// Gradients are reported as the optimizer takes them, as a Program does: clipped; parameters where there is
/// an optimizer. Where the plan has a loss scale, a step is skipped whose gradients a Program could not hold
/// times that scale.
class Reference {
 public:
  /// Copies all. `weights`: parameters, buffers and constants, all of them; read during construction only.
  /// Throws InputError for a missing or misshapen weight or an op that this torch does not have.
  Reference(const Intended& intended, const HostViews& weights, int threads);
  ~Reference();

  /// One step on the global batch. Throws RunError.
  StepValues step(const HostViews& batch);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace partita::run
