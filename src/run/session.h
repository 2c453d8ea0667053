#pragma once

#include <memory>
#include <optional>
#include <set>

#include "run/api.h"

namespace partita::run {

/// Everything that lasts from one step to the next, whole.
struct Lasting {
  HostTensors tensors;              // parameters and buffers
  std::vector<HostTensors> states;  // by number: of every trained parameter; the last ones are master copies
  int64_t steps = 0, updates = 0;   // a step that overflowed is no update
  LossScale scale;
};

/// What of it is to be replaced; absent names and counters stay.
struct LastingViews {
  HostViews tensors;
  std::vector<HostViews> states;  // by number; fewer than there are: the others stay
  std::optional<int64_t> steps, updates;
  std::optional<LossScale> scale;
};

/// A Program with its parameters and optimizer states in the memory of its ranks, ready to take steps.
///
/// What a rank's bytes consist of: its loads (parameters, states, batch pieces), what instructions allocate,
/// receive buffers, and the hidden workspace of ATen kernels; nothing else. Outside the count are constants
/// of instructions (8 bytes each, shared by the ranks), the float32 step number of the optimizer (one per
/// rank), and host copies of loads that the Program drops during a step. Local values still alive at the end
/// of a body die there; slots that neither are loaded nor carry an updated value die when the next step
/// begins.
class Session {
 public:
  /// Copies `step`. `weights`: parameters, buffers and constants, all of them; read during construction only.
  /// Throws InputError for a Program that cannot run or a missing or misshapen weight.
  Session(const Runnable& step, const HostViews& weights, const RunOptions& options);
  ~Session();
  Session(Session&&) noexcept;

  /// One step on the global batch. Throws RunError; after that the session is dead, unless it is recoverable
  /// (RunOptions) and no rank had begun to update: then it is as before the step. A rank that never comes
  /// back is left behind with everything it may still touch.
  StepReport step(const HostViews& batch);

  /// Numbers of the optimizer (lr, betas ...) for the steps from now on. Throws InputError for another
  /// optimizer, other groups or other states than the Program has.
  void set_optimizer(const OptimizerSpec& optimizer);

  /// Also before the first step and after one that failed.
  Lasting lasting() const;
  /// Replaces what is given. A master copy that is not given stays where it rounds to the given parameter,
  /// and is made from it elsewhere. Throws InputError for a name or a shape that the model does not have.
  void take_over(const LastingViews& given);
  /// Lets go of everything that lasts, until take_over gives all of it again.
  void release();
  /// The norm of all gradients of the last step, before they were clipped.
  double gradient_norm() const;

  /// The results of the last step. A kind the Program has no results for is empty.
  Values values(const std::set<Result::Kind>& kinds = {Result::kGradient, Result::kParameter,
                                                       Result::kBuffer}) const;
  /// By rank, since construction.
  std::vector<Bytes> peak_bytes() const;
  int64_t steps() const;
  /// Steps that have updated parameters.
  int64_t updates() const;
  /// What happened in the last step; empty unless the options ask for it.
  Trace trace() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace partita::run
