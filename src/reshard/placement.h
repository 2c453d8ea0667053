#pragma once

#include "reshard/reshard.h"

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

/// One way a consumer may take a value: the pieces it reads, and the pieces of the gradient as it leaves
/// them.
struct Admissible {
  std::vector<Piece> reads;
  std::vector<Piece> gradient;  // empty: nothing flows back
};

/// A value on its producer's devices, what its gradient must become there, and what the consumer admits.
struct OpenLayout {
  Problem forward;              // `to` is open
  std::vector<Piece> gradient;  // where the gradient is wanted; as addends where those are summed later
  std::vector<Admissible> admissible;
};

/// What one admissible way costs: seconds where `forward` has links, otherwise bytes.
struct LayoutChoice {
  size_t chosen = 0;  // position in `admissible`, the first of equals
  Answer forward, backward;
  double cost = 0;
};

/// Solves forward and backward of every admissible way and takes the pair with the least cost together: what
/// is free forward may be dear backward. InputError where nothing is admissible. Example: a copy on 0 and 1,
/// gradients wanted as addends: reading halves costs nothing forward, and backward each half is an addend
/// that stands where it is wanted.
LayoutChoice choose_layout(const OpenLayout& open);

}  // namespace partita::reshard
