#pragma once

#include "run/api.h"

namespace partita::run {

/// Runs every instruction that is no op of a model on float32 values of these many elements, on this thread.
std::vector<MoveMeasure> measure_moves(const std::vector<int64_t>& elements, int rounds);

}  // namespace partita::run
