#pragma once

#include <string>

#include "cluster/cluster.h"
#include "model/optimizer.h"

namespace partita::cli {

/// What a step computes in and what it keeps beside: "bfloat16, float32 gradients and master weights".
std::string show_dtype(const std::string& dtype, const OptimizerSpec& optimizer);

/// A line for whoever plans in float32 on a device that is faster in 16 bits: "float32; --precision bf16
/// computes up to 14.8x as fast on H100-80GB". Empty where there is nothing to gain.
std::string precision_hint(const std::string& dtype, const Cluster& cluster);

}  // namespace partita::cli
