#pragma once

#include <optional>
#include <vector>

#include "run/torch/value.h"

namespace partita::run {

/// A kCompute with `into`: a kernel that adds its result to a tensor that is there.
class Accumulation {
 public:
  /// None where the instruction makes a tensor of its own. Throws InputError for an op without such a kernel.
  static std::optional<Accumulation> make(const Op& op, const Instr& instr);

  void run(const Slots& slots) const;

  /// `number`: the op's row that counts for nothing, where it has one.
  using Kernel = void (*)(at::Tensor& into, const std::vector<at::Tensor>& in, int64_t number);

 private:
  Kernel kernel_ = nullptr;
  int64_t number_ = -1;
  std::vector<Slot> in_;  // in the order of the op's operands
  Slot into_, out_;
  std::vector<Slot> drop_;
};

}  // namespace partita::run
