#pragma once

#include <vector>

#include "lower/code.h"

namespace partita {

/// When a value of a stage dies.
enum class Death : uint8_t { kNever, kInBody, kAfterSend, kAfterLoop };

struct PlacedValue {
  Slot slot;
  Death death = Death::kNever;
  Segment segment = Segment::kPrologue;  // kInBody: at this step of this segment
  size_t index = 0;
};

/// Slots and deaths of the values of one stage, the same on all of its ranks.
struct Placement {
  std::vector<PlacedValue> values;
  int32_t rank_slots = 0, frame_slots = 0;
  int32_t locals[kSegments] = {};

  const Slot& slot(int value) const { return values[value].slot; }
  /// Slots that die with step `index` of `segment`, each once.
  std::vector<Slot> drops(Segment segment, size_t index, const CodeStep& step) const;
  std::vector<Slot> dead_after_loop() const;
};

/// `loops`: more than one micro-batch, so that what was made before the loop cannot die inside it.
Placement place_values(const StageCode& code, const std::vector<Transfer>& transfers, int stage, bool loops);

}  // namespace partita
