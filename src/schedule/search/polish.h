#pragma once

#include <cstdint>

#include "schedule/list_schedule.h"
#include "schedule/search/problem.h"

namespace partita::schedule {

/// What polishing compares orders by, and whose critical path it follows.
struct Aim {
  Objective score;
  Objective path;
};

/// Improves an order by swapping neighbours on its critical path (tabu search, as for job shops): the best
/// swap is taken even if it is worse, and not undone for a while. Stops after `work` retimed operations, or
/// when what the path measures reaches `bound`. Never returns anything worse. `spent` grows by the work done.
Listed polish(const Flow& flow, const Listed& from, Aim aim, int64_t bound, int64_t work, int64_t& spent);

/// Orders are compared by the objective first and the other measure second.
std::pair<int64_t, int64_t> score(const Listed& listed, Objective objective);

}  // namespace partita::schedule
