#pragma once

#include <vector>

#include "lower/classes.h"
#include "lower/code.h"
#include "lower/frees.h"
#include "lower/instances.h"
#include "lower/ordered.h"
#include "lower/placement.h"

namespace partita::lower {

/// A rank program whose actions are to be listed.
struct RankOrder {
  const Code& code;
  const Ordered& ordered;
  const Placement& placement;  // of its site
  const Frees& frees;
  const RankClasses& classes;
  const RankBodies& bodies;
  int site = 0;
  int64_t index = 0;  // in the grid of its site
  int microbatches = 1;
};

/// The flat list of one rank: bodies in the order of the schedule, receives opened one receiving step ahead,
/// sends after the body that writes. A send is waited for before the first step that starts after its
/// receiver did in the order of the schedule: such waits all point forward in one order of all steps, so that
/// none of them can close a circle, and memory stays bounded.
std::vector<Action> rank_actions(const RankOrder& rank);

}  // namespace partita::lower
