#pragma once

#include "program/program.h"

namespace partita::lower {

/// The same Program with collectives that computing goes on beside, where nobody needs their results yet:
/// - sums over ranks at the end of the step start where their last addend is made (start_sums.h);
/// - parameters are gathered ahead and sums inside of a body wait (overlap_body.h).
/// All others stay. Where members of a group would meet in different orders, bodies stay as they are, or all
/// does.
/// REQUIRES: the Program is certified, or is one of classes; nothing in it is started yet.
Program overlap(const Program& program);

}  // namespace partita::lower
