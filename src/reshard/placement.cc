#include "reshard/placement.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "reshard/cover_set.h"
#include "reshard/exchange.h"

namespace partita::reshard {
namespace {

constexpr size_t kSwapSlots = 16;  // more slots are not improved by exchanges: every look costs a bound

int64_t bound_bytes(const Problem& problem) {
  Cells cells = cut(problem);
  return bound_of(cells, make_agenda(cells)).elements * problem.elem_bytes;
}

std::vector<Piece> on_devices(std::vector<Piece> pieces, const std::vector<int32_t>& device_of) {
  for (Piece& piece : pieces) piece.device = device_of[piece.device];
  return pieces;
}

/// Bytes of the slots' pieces that a device has on the other side.
void add_overlap(const std::vector<Piece>& slots, const std::vector<Piece>& fixed, int64_t elem_bytes,
                 const std::vector<int32_t>& devices, std::vector<std::vector<int64_t>>& cost) {
  for (const Piece& slot : slots)
    for (const Piece& piece : fixed)
      for (size_t d = 0; d < devices.size(); ++d)
        if (devices[d] == piece.device)
          cost[slot.device][d] -= common_volume(slot.region, piece.region) * elem_bytes;
}

}  // namespace

int64_t placed_bytes(const OpenPlacement& open, const std::vector<int32_t>& device_of) {
  Problem forward = open.forward;
  forward.to = on_devices(forward.to, device_of);
  int64_t bytes = bound_bytes(forward);
  if (open.backward) {
    Problem backward = *open.backward;
    backward.from = on_devices(backward.from, device_of);
    bytes += bound_bytes(backward);
  }
  return bytes;
}

std::vector<int32_t> place(const OpenPlacement& open) {
  size_t slots = open.devices.size();
  std::vector<std::vector<int64_t>> cost(slots, std::vector<int64_t>(slots, 0));
  add_overlap(open.forward.to, open.forward.from, open.forward.elem_bytes, open.devices, cost);
  if (open.backward)
    add_overlap(open.backward->from, open.backward->to, open.backward->elem_bytes, open.devices, cost);
  std::vector<int32_t> best;
  for (int32_t column : least_assignment(cost)) best.push_back(open.devices[column]);
  int64_t bytes = placed_bytes(open, best);
  if (int64_t standing = placed_bytes(open, open.devices); standing <= bytes)
    best = open.devices, bytes = standing;
  // Overlap is exact for complete copies; addends and replicas may gain from an exchange.
  for (bool better = bytes > 0 && slots <= kSwapSlots; better;) {
    better = false;
    for (size_t i = 0; i < slots; ++i)
      for (size_t j = i + 1; j < slots; ++j) {
        std::swap(best[i], best[j]);
        int64_t swapped = placed_bytes(open, best);
        if (swapped < bytes)
          bytes = swapped, better = true;
        else
          std::swap(best[i], best[j]);
      }
  }
  return best;
}

LayoutChoice choose_layout(const OpenLayout& open) {
  if (open.admissible.empty())
    input_error("reshard: a consumer admits no layout; name at least one, the producer's for example");
  auto cost_of = [&](const Answer& answer) {
    return open.forward.links ? answer.seconds : double(answer.total_bytes);
  };
  std::optional<LayoutChoice> best;
  for (size_t i = 0; i < open.admissible.size(); ++i) {
    LayoutChoice choice{.chosen = i, .forward = {}, .backward = {}};
    Problem forward = open.forward, backward = open.forward;
    forward.to = open.admissible[i].reads;
    choice.forward = solve(forward);
    backward.from = open.admissible[i].gradient;
    backward.to = open.gradient;
    if (!backward.from.empty()) choice.backward = solve(backward);
    choice.cost = cost_of(choice.forward) + cost_of(choice.backward);
    if (!best || choice.cost < best->cost) best = std::move(choice);
  }
  return std::move(*best);
}

}  // namespace partita::reshard
