#pragma once

#include <vector>

#include "estimate/estimate.h"
#include "estimate/freedom.h"
#include "plan/plan.h"

namespace partita::search {

/// Plans that differ from `plan` in one decision and may be faster for more memory: one module less that is
/// computed again, or another one, or one group of equal parameters of which less is stored in pieces, as far
/// as `freedom` lets it. At most `most`.
/// Example: "zero3-2, recompute" of two layers gives "zero3-2, recompute 1 of 2" twice, and one plan for each
/// kind of weight that is kept whole between forward and backward.
std::vector<Plan> neighbours(const Model& model, const Plan& plan, const Freedom& freedom, size_t most);

/// Equal parameters, and what of them is stored in pieces over dp: 0 nothing, 1 states, 2 gradients too, 3
/// all.
struct StorageGroup {
  std::string params;
  Bytes bytes = 0;
  int level = 0;
};
/// Those of a plan, with level 0; none where something is stored over several axes.
std::vector<StorageGroup> storage_groups(const Model& model, const Plan& plan);
/// The plan with these groups stored so.
Plan with_storage(const Model& model, const Plan& plan, const std::vector<StorageGroup>& groups);

/// The other way: one module more that is computed again, or more of one that is in part; of those that run
/// on one of these devices.
std::vector<Plan> thriftier(const Model& model, const Plan& plan, const Freedom& freedom,
                            const std::vector<int32_t>& devices, size_t most);

}  // namespace partita::search
