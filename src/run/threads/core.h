#pragma once

#include <cstdint>

namespace partita::run {

/// Keeps the calling thread on core `rank` of those that it may use, counted from 0. Changes nothing where
/// it may not use as many as `ranks`.
void stay_on_core(int32_t rank, int32_t ranks);

}  // namespace partita::run
