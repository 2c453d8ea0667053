#pragma once

#include "run/api.h"

namespace partita {

/// Runs the step `repeats` times on this thread as a rank runs it, and once more for its hidden bytes.
/// `weights` and `batch`: all that the step reads.
std::vector<OpMeasure> measure_ops(const Model& model, const HostViews& weights, const HostViews& batch,
                                   int repeats);

}  // namespace partita
