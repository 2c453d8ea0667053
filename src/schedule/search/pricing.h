#pragma once

#include <string_view>
#include <vector>

#include "schedule/cost.h"
#include "schedule/schedule.h"

namespace partita::schedule {

/// Costs before it is known how many chunks a device has.
struct Pricing {
  StageCost cost;  ///< of one device-stage (all chunks of a device together), or of one chunk
  bool per_chunk = false;
  Rational hop = 0;               ///< between two devices, never divided
  Rational embedding = 0;         ///< forward time on top of the first stage, as if it were that much longer
  Rational head = 0;              ///< the same on the last stage
  int64_t held = 1;               ///< memory of a live chunk until its input gradient, and
  int64_t held_after = 1;         ///< from there until its weight gradient
  std::vector<StageCost> stages;  ///< one by one; empty: every stage costs `cost`
  std::vector<StageMemory> memory;  ///< one by one; empty: `held` and `held_after`
  std::vector<Rational> links;      ///< hop of [from * devices + to]; empty: `hop`
};

/// Costs of the stages of `shape` (its order is not read). An interlaced schedule spreads embedding and head
/// over all devices, where its slices count no memory unless `memory` says so; the others add them to the end
/// stages, a backward in the same proportion as its forward.
Costs price(const Pricing& pricing, const Schedule& shape);

/// Reads stages one by one: a header naming columns (forward, backward, input_grad, weight_grad, held,
/// held_after) or plain rows `forward,backward` or `forward,input_grad,weight_grad`. Throws InputError that
/// names `where` and line.
void parse_stage_costs(std::string_view text, std::string_view where, Pricing& pricing);

/// Reads a square table of hops, one row for each sending device.
std::vector<Rational> parse_links(std::string_view text, std::string_view where);

}  // namespace partita::schedule
