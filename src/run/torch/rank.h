#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "run/communicator.h"
#include "run/options.h"
#include "run/position.h"
#include "run/torch/prepared.h"

namespace partita::run {

/// The slots of one rank, and the execution of bodies on them. Used by the rank's thread, under
/// InferenceMode.
class Rank {
 public:
  /// REQUIRES: `program`, `bodies`, `memory`, `comm` and `at` outlive it.
  Rank(const Program& program, int32_t rank, const std::vector<PreparedBody>& bodies, Memory& memory,
       Communicator& comm, Position& at);
  /// From now on `observe` sees what instructions leave. REQUIRES: it outlives the rank.
  void show_to(const Observe& observe) { observe_ = observe ? &observe : nullptr; }
  /// From now on `clocked` is told what instructions took. REQUIRES: it outlives the rank.
  void time_for(const Clocked& clocked) { clocked_ = clocked ? &clocked : nullptr; }

  /// From now on called before the first update of every step; it may wait for the other ranks.
  void commit_by(std::function<void()> commit) { commit_ = std::move(commit); }

  /// The step number the optimizer corrects its moments with, from 1, and the loss scale.
  void begin_step(int64_t step, double loss_scale);
  /// Was the update of this step skipped, since a gradient was not finite?
  bool overflowed() const { return overflowed_; }
  /// Has the rank begun to change parameters in this step?
  bool updating() const { return updating_; }
  /// The norm of all gradients of this step, the loss scale taken out; none where the Program needs none.
  std::optional<double> gradient_norm() const { return norm_; }
  /// Spent in optimizer updates since `begin_step`.
  Seconds optimizer_seconds() const { return optimizer_seconds_; }
  void run(BodyId body, int32_t microbatch);
  void allocate(Slot slot, int32_t microbatch, TypeId type);
  void free(Slot slot, int32_t microbatch) { value(slot, microbatch).reset(); }
  /// Empties every slot.
  void clear();
  TensorSpan span(Slot slot, int32_t microbatch);
  /// What lies in the slot, on the host.
  HostTensor read(Slot slot, int32_t microbatch) { return memory_.read(view(slot, microbatch)); }
  /// Of what lies in the slot; its shape stays where the tensor is.
  TensorView view(Slot slot, int32_t microbatch);
  at::Tensor& value(Slot slot, int32_t microbatch = 0) { return slots(microbatch)[slot]; }

 private:
  Slots slots(int32_t microbatch);
  void execute(const PreparedInstr& prepared, int32_t microbatch, const Slots& slots);
  void show(const Instr& instr, int32_t number, const Slots& slots) const;
  at::Tensor collective(const Instr& instr, const at::Tensor& in);
  at::Tensor slice(const at::Tensor& in, const Instr& instr) const;
  at::Tensor concat(const Instr& instr, const Slots& slots) const;
  at::Tensor zeros(const TensorType& type) const;
  at::Tensor laid_out_as(const at::Tensor& gradient, const at::Tensor& parameter) const;
  at::Tensor optimize(const Instr& instr, const Slots& slots);
  double gradient_factor(double squares);
  static void multiply(at::Tensor& tensor, double factor);

  const Program& program_;
  const std::vector<PreparedBody>& bodies_;
  Memory& memory_;
  const TensorMaker make_;
  Communicator& comm_;
  Position& at_;
  const Observe* observe_ = nullptr;
  const Clocked* clocked_ = nullptr;
  const int32_t number_;
  std::vector<at::Tensor> rank_, locals_;
  std::vector<std::vector<at::Tensor>> frames_;  // by micro-batch
  torch::jit::Stack stack_;                      // scratch of dispatcher calls
  at::Tensor step_;                              // float32, what the fused optimizers read
  int64_t step_number_ = 0;
  double loss_scale_ = 1;
  bool overflowed_ = false, updating_ = false;
  std::optional<double> norm_;
  std::function<void()> commit_;
  Seconds optimizer_seconds_ = 0;
};

}  // namespace partita::run
