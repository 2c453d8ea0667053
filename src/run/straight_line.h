#pragma once

#include "run/host_tensor.h"

namespace partita::run {

/// The step of `model` on one rank, written down without any lowering: every op once in the model's order, a
/// value dropped after its last reader, then the optimizer, parameter by parameter. It is the reference of
/// every comparison, so it shares no code with what it is compared to. Results: loss, every gradient, every
/// updated parameter and buffer.
Program straight_line(const Model& model, const OptimizerSpec& optimizer, const LeafSizes& leaves);

}  // namespace partita::run
