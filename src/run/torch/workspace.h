#pragma once

#include <vector>

#include "run/host_tensor.h"

namespace partita::run {

/// Bytes of one call of an op of a model.
struct OpMemory {
  OpId op;
  Bytes outputs = 0;         // storage the outputs brought into being
  Bytes workspace = 0;       // most the call held beyond its inputs and outputs
  bool lies_as_said = true;  // outputs have the strides of the Model
};

/// Runs the step once on this thread with torch's present number of threads, each op on its own account, and
/// says what it allocated. In the model's order; what an op gives out and nobody reads counts as output.
std::vector<OpMemory> measure_workspace(const Model& model, const HostViews& weights, const HostViews& batch);

}  // namespace partita::run
