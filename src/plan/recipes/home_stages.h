#pragma once

#include <vector>

#include "plan/plan.h"

namespace partita::plan {

/// The stage of every op by name, else by dataflow: a forward op follows the last of its inputs, a backward
/// op its forward op, or the first of its inputs.
std::vector<int> home_stages(const Model& model, const Plan& plan);

/// Per op: is its stage on the devices of all others?
std::vector<bool> spanning_ops(const Model& model, const Plan& plan);

}  // namespace partita::plan
