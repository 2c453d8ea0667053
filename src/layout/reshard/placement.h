#pragma once

#include "layout/reshard/problem.h"

namespace partita::reshard {

/// A transfer whose consumers' devices are open. In `forward.to` and `backward.from` a device is a slot, 0 ..
/// n-1.
struct OpenPlacement {
  Problem forward;
  std::optional<Problem> backward;  // what flows back from the same slots, as gradients do
  std::vector<int32_t> devices;     // n candidates; slot i on devices[i] is the placement as it stands
};

/// The device of every slot, chosen for the fewest bytes forward and backward together: by what each device
/// has at home (an assignment problem), then by exchanging two slots while that helps; never worse than as it
/// stands. Example: quarters [0:2,0:2].. of a 4x4 tensor on 0 1 2 3 to columns: slots on 0 2 1 3, every
/// device keeps half.
std::vector<int32_t> place(const OpenPlacement& open);

/// Bytes that must move, forward and backward, with slot i on device_of[i].
int64_t placed_bytes(const OpenPlacement& open, const std::vector<int32_t>& device_of);

}  // namespace partita::reshard
