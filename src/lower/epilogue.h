#pragma once

#include "lower/draft.h"

namespace partita::lower {

/// Writes what ends the step: loss and buffers whole, every gradient complete where its parameter is updated,
/// clipped by the norm of all of them, and the update of every parameter at each site that holds it.
/// REQUIRES: every job of the draft is written.
void write_epilogue(Draft& draft);

}  // namespace partita::lower
