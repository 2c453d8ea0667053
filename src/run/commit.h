#pragma once

#include "program/routes.h"

namespace partita::run {

/// Can every rank wait, before its first update of a parameter, until all ranks have come as far or ended
/// their step? A failure before that point then leaves every parameter as it was. False where a rank needs
/// something of another one's actions after that point in order to reach its own.
/// Example: of two pipeline stages each sums gradients and updates; neither receives anything after that.
bool can_commit(const Program& program, const Routes& routes);

}  // namespace partita::run
