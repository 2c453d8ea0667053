#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/model.h"

namespace partita::run {

/// An op to try, with its arguments as text: tensors `F[m,k]` (normal), `N[...]` (the same with some NaN and
/// infinite ones), `P[...]` (between 0.5 and 1.5), `U[...]` (between 0 and 1), `I(v)[...]` (whole numbers
/// below v), `B[...]` (truth values); whole numbers as sums and products of letters; `0.5`, `none`, `true`,
/// `false`, `'text'`, `float64`, lists in brackets, keywords `dim=1`; then `-> 3` where it has three outputs.
/// A letter is a random size. Example: {"aten.mm.default", "F[m,k], F[k,n]"}.
struct Sample {
  std::string_view target;
  std::string_view text;
};

/// A sample with its letters drawn: a Model of one op, its inputs and what the op makes of them.
struct Instance {
  Model model;
  std::vector<at::Tensor> in, out;  // an output that is not made is undefined

  const Op& op() const { return model.ops[0]; }
};

/// Every letter has its own size between 2 and 6, drawn from `seed`; with seed 0 all have size 4.
Instance draw(const Sample& sample, uint64_t seed);

/// Calls `piece`, the op of the model with other attributes, through the dispatcher: `in` in the order of
/// inputs_of. Throws what the kernel throws.
std::vector<at::Tensor> call(const Model& model, const Op& piece, const std::vector<at::Tensor>& in,
                             size_t outputs);

}  // namespace partita::run
