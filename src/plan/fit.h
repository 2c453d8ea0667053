#pragma once

#include <optional>

#include "plan/plan.h"

namespace partita::plan {

/// The plan for another step of the module it was made for: another batch, or forward alone. Mesh, stages and
/// storage stay; rules that name nothing there are left out, and a step that trains nothing has neither
/// recomputation nor an optimizer. Nothing where the other step cannot run so, such as a batch with fewer
/// samples than ranks.
std::optional<Plan> fit(const Plan& plan, const Model& model);

}  // namespace partita::plan
