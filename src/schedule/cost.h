#pragma once

#include <array>
#include <vector>

#include "base/rational.h"
#include "schedule/schedule.h"

namespace partita::schedule {

/// Time of the steps of one stage. A fused backward costs `input_grad + weight_grad` unless said otherwise.
struct StageCost {
  Rational forward = 1;
  Rational input_grad = 1;
  Rational weight_grad = 1;
  Rational backward = 2;

  bool operator==(const StageCost&) const = default;
};

/// What one live micro-batch of a stage holds: from its forward to its (input-grad) backward, and from there
/// to its weight-grad. In any unit: bytes, or 1 and 1 to count chunks.
struct StageMemory {
  int64_t until_input_grad = 1;
  int64_t until_weight_grad = 1;

  bool operator==(const StageMemory&) const = default;
};

/// Costs of a schedule: exact, in any unit of time.
struct Costs {
  std::vector<StageCost> stages;
  std::vector<StageMemory> memory;  ///< empty: every live chunk counts 1
  Rational hop = 0;                 ///< a transfer between two devices; nothing inside one device
  std::vector<Rational> links;      ///< hop of [from * devices + to]; empty: `hop` everywhere

  bool operator==(const Costs&) const = default;
};

/// Gives every stage of a schedule with `stages` stages the same cost.
Costs uniform_costs(const StageCost& cost, const Rational& hop, int stages);

/// Costs as whole ticks of 1 / `per_unit`, so that simulating is integer arithmetic and still exact.
struct Ticks {
  int64_t per_unit = 1;
  std::vector<std::array<int64_t, kStepKinds>> stage;  ///< [stage][kind]
  std::vector<int64_t> link;                           ///< [from * devices + to]; 0 on the diagonal
  std::vector<StageMemory> memory;
  int devices = 0;

  int64_t cost(const Step& step) const { return stage[step.stage][int(step.kind)]; }
  int64_t hop(int from, int to) const { return link[size_t(from) * devices + to]; }
  Rational time(int64_t ticks) const { return Rational(ticks, per_unit); }
};

/// Scales costs to the least common denominator. Throws InputError when a cost is negative, when the number
/// of stages is not `stages`, or when the sum over `microbatches` would not fit 62 bits.
Ticks to_ticks(const Costs& costs, int devices, int stages, int microbatches);

}  // namespace partita::schedule
