#pragma once

#include <memory>
#include <set>

#include "run/api.h"

namespace partita {

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

  /// One step on the global batch. Throws RunError; after that the session is dead. A rank that never comes
  /// back is left behind with everything it may still touch.
  StepReport step(const HostViews& batch);

  /// For the steps from now on.
  void set_learning_rate(double lr);

  /// The results of the last step. A kind the Program has no results for is empty.
  Values values(const std::set<Result::Kind>& kinds = {Result::kGradient, Result::kParameter,
                                                       Result::kBuffer}) const;
  /// By rank, since construction.
  std::vector<Bytes> peak_bytes() const;
  int64_t steps() const;
  /// What happened in the last step; empty unless the options ask for it.
  Trace trace() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace partita
