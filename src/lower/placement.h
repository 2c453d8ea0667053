#pragma once

#include <map>
#include <vector>

#include "lower/code.h"

namespace partita::lower {

/// Slots of the values of one site, the same on all of its ranks: each value has one of its own. A view's
/// names the storage of another.
struct Placement {
  std::vector<Slot> slots;  // by value
  std::vector<Uses> uses;   // by value
  int32_t rank_slots = 0, frame_slots = 0;
  std::map<Segment, int32_t> locals;  // how many slots a segment has inside

  const Slot& slot(int value) const { return slots[value]; }
};

/// By site. A value lies as near as its readers let it: inside of its segment, else of its micro-batch, else
/// on the rank for the whole step.
std::vector<Placement> place(const Code& code);

}  // namespace partita::lower
