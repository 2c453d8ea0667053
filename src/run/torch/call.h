#pragma once

#include <ATen/core/stack.h>

#include <memory>

#include "program/program.h"
#include "run/torch/value.h"

namespace partita {

/// One kCompute instruction made ready: the operator looked up, constant arguments built, inputs that die
/// here known. Immutable and shared by all ranks.
class Call {
 public:
  /// Throws InputError if this torch has no such op or its schema does not take the arguments.
  Call(const Model& model, const Instr& instr);
  ~Call();
  Call(Call&&) noexcept;

  /// Runs it on `slots`: inputs named in the instruction's `drop` are gone afterwards, outputs are there.
  /// `stack` is scratch, kept by the caller so that its memory is used again.
  void run(const Slots& slots, torch::jit::Stack& stack) const;

 private:
  struct Prepared;
  static void call_boxed(const Prepared& prepared, torch::jit::Stack& stack);
  std::unique_ptr<Prepared> prepared_;
};

}  // namespace partita
