#pragma once

#include <string>

#include "schedule/evaluate.h"

namespace partita::schedule {

/// Draws a run as text: a row of cells for each device, time to the right, and its idle share. A digit or
/// letter starts a step of that micro-batch (mod 36) and its kind goes on: `-` forward, `=` backward, `~`
/// input-grad,
/// `+` weight-grad; `.` is idle. With `colour` each kind has its own background.
/// Wider than `width` columns: the time scale shrinks. REQUIRES: !run.deadlock.
std::string draw(const Schedule& schedule, const Evaluation& run, bool colour, int width);

}  // namespace partita::schedule
