#pragma once

#include <vector>

#include "program/program.h"

namespace partita::run {

/// Where a load's value comes from when a step after the first begins.
enum class Next : uint8_t {
  kBatch,      // cut out of the step's batch
  kStay,       // the slot still holds it
  kCarry,      // result slot `from` of the same rank holds the updated value
  kCopy,       // unchanged, but the Program dropped it: a host copy of the box
  kReassemble  // updated, but in other boxes or on other ranks
};

struct NextLoad {
  const Load* load = nullptr;
  Next next = Next::kStay;
  Slot from;
};

/// Does the tensor last from step to step: a parameter or a buffer?
bool lasts(const Tensor& tensor);

/// By load of the rank. REQUIRES: check_runnable has passed; `program` outlives the answer.
/// Throws InputError if an optimizer state does not survive a step.
std::vector<NextLoad> plan_loads(const Program& program, const Model& model, int32_t rank);

}  // namespace partita::run
