#pragma once

#include "run/api.h"

namespace partita::run {

/// Runs the step a few times on this thread as a rank runs it, with and without a look at the clock after
/// every op, and once more for its hidden bytes. `values`: all that the step reads.
StepMeasure measure_step(const Model& model, const HostViews& values);

}  // namespace partita::run
