#pragma once

#include <span>

#include "model/build/build.h"

namespace partita::cost {

/// Steps whose ops `calibrate` measures: widths, lengths and families such that products of every layout,
/// attention, norms, softmax, lookups and copies occur from the size of a cache to well beyond it.
std::span<const Preset> calibration_probes();

/// Steps that `calibrate` predicts and then measures. None of them is a probe, and one family has no probe.
std::span<const Preset> calibration_trials();

}  // namespace partita::cost
