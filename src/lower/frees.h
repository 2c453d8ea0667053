#pragma once

#include <vector>

#include "lower/code.h"
#include "lower/placement.h"

namespace partita::lower {

/// When a value of a site dies. kByAction: after its last use and its last send, whichever the schedule
/// makes the later one.
enum class Death : uint8_t { kNever, kInBody, kByAction, kAfterLoop };

struct Freed {
  Death death = Death::kNever;
  Segment segment;  // kInBody: at this step of this segment
  size_t index = 0;
  std::vector<Segment> users;  // kByAction: segments inside the loop that read or make it
};

/// Deaths of the values of one site, the same on all of its ranks.
struct Frees {
  std::vector<Freed> values;

  /// Slots that die with step `index` of `segment`, each once.
  std::vector<Slot> drops(const Placement& placement, const Segment& segment, size_t index,
                          const CodeStep& step) const;
  std::vector<Slot> dead_after_loop(const Placement& placement) const;
};

/// By site. `many_microbatches`: what was made before the loop over them cannot die inside it.
std::vector<Frees> free_slots(const Code& code, const std::vector<Placement>& placements,
                              bool many_microbatches);

}  // namespace partita::lower
