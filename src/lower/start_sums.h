#pragma once

#include "program/program.h"

namespace partita::lower {

/// Moves collectives out of the last body of each rank: each starts in the body that touches its input last,
/// right after that, and is waited for where it stood. Bodies that run several times are moved into in their
/// last run alone. A collective that makes something new is waited for when the next one of its group
/// starts, so that one is under way at a time; sums in place cost no memory and are not. Of a chain (a
/// reduce-scatter, then an all-reduce of its pieces) every link is moved.
/// Example: backward `g = mm(x, y); ...`, epilogue `s = all_reduce(g); optimize(p, s)` become backward `g =
/// mm(x, y); start s = all_reduce(g); ...`, epilogue `wait(s); optimize(p, s)`.
Program start_sums(Program program);

}  // namespace partita::lower
