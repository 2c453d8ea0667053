#pragma once

#include <span>

#include "model/build/graph.h"

namespace partita::model::build {

/// One op to differentiate: the gradients of its outputs (none where nothing reads an output) and which of
/// its inputs want one.
struct Differentiated {
  const Op& op;
  std::vector<TensorId> inputs;
  std::vector<TensorId> gradients;
  std::vector<bool> wanted;

  TensorId gradient() const { return gradients[0]; }
};

/// How an op's inputs change the loss, as data: one row per op. `rule` writes the ops PyTorch's autograd
/// would, and gives a gradient per input (none where it is not wanted); one of broadcast sizes is summed up
/// afterwards.
struct GradientRow {
  std::string_view target;
  std::vector<TensorId> (*rule)(Graph& g, const Differentiated& d);
};

std::span<const GradientRow> gradient_rows();
const GradientRow* find_gradient(std::string_view target);

}  // namespace partita::model::build
