#pragma once

#include "search/judging.h"

namespace partita {

/// Estimates recipes that were judged again, with everything stored alike, with other limits of memory and with
/// stages cut a unit away, and leaves them with `judging`.
void refine(Judging& judging, const CostBook& book, const Freedom& freedom);

}  // namespace partita
