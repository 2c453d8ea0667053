#pragma once

#include "run/host_tensor.h"

namespace partita::run {

/// Weights whose wholes are given, with the pieces that the model takes them apart into (Tensor::part) beside
/// them; `storage` holds what had to be copied and must outlive the answer.
HostViews with_parts(const Model& model, HostViews weights, HostTensors& storage);

/// The way back: pieces joined under the name of their whole.
void join_parts(const Model& model, HostTensors& values);

}  // namespace partita::run
