#pragma once

#include <span>

#include "rows_sample.h"

namespace partita {

/// At least one sample for every row, more where attributes or missing operands change what it says.
std::span<const Sample> samples();

}  // namespace partita
