#pragma once

#include <span>

#include "rows_sample.h"

namespace partita::run {

/// At least one sample for every row, more where attributes or missing operands change what it says.
std::vector<Sample> samples();

/// Those of functions of single elements, of ops along a dimension and losses, of ops on images.
std::span<const Sample> function_samples();
std::span<const Sample> line_samples();
std::span<const Sample> image_samples();

}  // namespace partita::run
