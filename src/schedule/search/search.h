#pragma once

#include "schedule/search/problem.h"

namespace partita::schedule {

/// Searches. Deterministic: work is limited in steps, not in seconds. Never longer than any named schedule of
/// the same placement, chunks and cap. Throws Infeasible when a device cannot hold one micro-batch.
Found search_schedule(const SearchProblem& problem);

/// Searches again after costs changed, from the order in hand: a small part of the work, for use between
/// steps. Never longer than keeping the order. REQUIRES: `before` is a schedule of this placement, within the
/// caps.
Found replan(const SearchProblem& problem, const Schedule& before);

}  // namespace partita::schedule
