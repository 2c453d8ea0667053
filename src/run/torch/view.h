#pragma once

#include <optional>
#include <vector>

#include "run/torch/value.h"

namespace partita::run {

/// A view op as arithmetic on sizes and strides. Half of the ops of a step are such, and through the
/// dispatcher each costs as much as a small kernel.
class View {
 public:
  /// None for ops that are not in the table, or whose arguments are not plain numbers.
  static std::optional<View> make(const Op& op, const Instr& instr);

  /// Puts the view into its slot. False, with nothing changed, where the arithmetic does not apply: ATen then
  /// does it or says what is wrong.
  bool run(const Slots& slots) const;

  struct Geometry {
    c10::DimVector sizes, strides;
  };
  /// False: does not apply.
  using Arithmetic = bool (*)(const at::Tensor& in, const std::vector<int64_t>& numbers, Geometry& out);

 private:
  Arithmetic arithmetic_ = nullptr;
  std::vector<int64_t> numbers_;  // the op's arguments after the tensor
  Slot in_, out_;
  bool last_ = false;  // the input dies here
};

}  // namespace partita::run
