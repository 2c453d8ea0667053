#pragma once

#include "program/program.h"

namespace partita::lower {

/// The body with collectives that its own instructions hide:
/// - parameters gathered for it are gathered ahead, in the order of their use, as far as what is ahead is no
///   larger than the largest of them: at most that many bytes more are alive;
/// - sums that are only added to others, and what nobody reads in the body, are waited for when the next
///   collective of their group starts, at the latest where the body touches them, or at its end.
Body overlap_body(const Program& program, Body body);

}  // namespace partita::lower
