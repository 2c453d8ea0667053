#pragma once

#include <map>
#include <vector>

#include "lower/code.h"

namespace partita::lower {

/// When a value of a site dies. kByAction: after its last use and its last send, whichever the schedule makes
/// the later one.
enum class Death : uint8_t { kNever, kInBody, kByAction, kAfterLoop };

struct PlacedValue {
  Slot slot;
  Death death = Death::kNever;
  Segment segment;  // kInBody: at this step of this segment
  size_t index = 0;
  std::vector<Segment> users;  // kByAction: segments inside the loop that read or make it
};

/// Slots and deaths of the values of one site, the same on all of its ranks.
struct Placement {
  std::vector<PlacedValue> values;
  int32_t rank_slots = 0, frame_slots = 0;
  std::map<Segment, int32_t> locals;

  const Slot& slot(int value) const { return values[value].slot; }
  /// Slots that die with step `index` of `segment`, each once.
  std::vector<Slot> drops(const Segment& segment, size_t index, const CodeStep& step) const;
  std::vector<Slot> dead_after_loop() const;
};

/// By site. `loops`: more than one micro-batch, so that what was made before the loop cannot die inside it.
std::vector<Placement> place(const Code& code, bool loops);

}  // namespace partita::lower
