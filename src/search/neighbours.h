#pragma once

#include <vector>

#include "plan/plan.h"
#include "search/freedom.h"

namespace partita {

/// Plans that differ from `plan` in one decision and may be faster for more memory: one module less that is
/// computed again, or another one, or one group of equal parameters of which less is stored in pieces, as far
/// as `freedom` lets it. At most `most`.
/// Example: "zero3-2, recompute" of two layers gives "zero3-2, recompute 1 of 2" twice, and one plan for each
/// kind of weight that is kept whole between forward and backward.
std::vector<Plan> neighbours(const Model& model, const Plan& plan, const Freedom& freedom, size_t most);

/// The other way: one module more that is computed again, or more of one that is in part.
std::vector<Plan> thriftier(const Model& model, const Plan& plan, const Freedom& freedom, size_t most);

}  // namespace partita
