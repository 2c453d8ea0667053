#pragma once

#include <vector>

#include "plan/plan.h"
#include "plan/transform.h"

namespace partita::plan {

/// The stages every op inside the loop runs on: the second primitive. Usually one; an op that no trainable
/// parameter leads to runs on every stage that reads it, which is cheaper than sending. Ops before and after
/// the loop have none: they run wherever they are asked for.
struct Assigned {
  std::vector<std::vector<int>> stages;  // per op, ascending
  int loss_stage = 0;
};

/// An op is placed by the first stage with a matching pattern; one that no pattern names follows its inputs
/// (forward) or its forward op (backward).
Assigned assign(const Model& model, const Plan& plan, const Transformed& transformed);

}  // namespace partita::plan
