#pragma once

#include "model/build/graph.h"

namespace partita::model::build {

/// Appends the backward pass of `loss`: ops in the reverse of the order they ran in, as PyTorch's engine
/// takes them, and contributions to one gradient added in the order they appear. Returns (trainable
/// parameter, its gradient) in the order of parameters; one the loss does not use has none.
std::vector<std::pair<TensorId, TensorId>> differentiate(Graph& g, TensorId loss);

}  // namespace partita::model::build
