#pragma once

#include <ATen/core/stack.h>

#include <memory>

#include "program/program.h"
#include "run/torch/value.h"

namespace partita::run {

/// One kCompute instruction made ready: the operator looked up, constant arguments built, inputs that die
/// here known. Immutable and shared by all ranks.
class Call {
 public:
  /// Short: common views are made without asking torch. Dispatched: every op goes through its dispatcher.
  enum class Way : uint8_t { kShort, kDispatched };
  /// Throws InputError if this torch has no such op or its schema does not take the arguments. `program`,
  /// whose types the instruction names, says how dimensions of one element lie: kernels look there for
  /// channels last.
  Call(const Model& model, const Instr& instr, const Program* program = nullptr, Way way = Way::kShort);
  ~Call();
  Call(Call&&) noexcept;

  /// Runs it on `slots`: inputs named in the instruction's `drop` are gone afterwards, outputs are there.
  /// `stack` is scratch, kept by the caller so that its memory is used again.
  void run(const Slots& slots, torch::jit::Stack& stack) const;

 private:
  struct Prepared;
  static void call_boxed(const Prepared& prepared, torch::jit::Stack& stack);
  /// The rest of `run` for an op that may return the storage of an input: its outputs get their own.
  void run_apart(const Slots& slots, torch::jit::Stack& stack) const;
  /// `run` without the strides of dimensions of one element.
  void compute(const Slots& slots, torch::jit::Stack& stack) const;
  std::unique_ptr<Prepared> prepared_;
};

}  // namespace partita::run
