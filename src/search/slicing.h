#pragma once

#include <vector>

#include "plan/recipes/recipe.h"

namespace partita::search {

/// Plans in which the operators of one more group of equal parameters that ranks keep in pieces run in
/// slices, gathered, used and dropped one at a time (OSDP), or in twice as many; of the groups whose
/// parameters are largest, which a rank holds whole for a moment. `recipes` is of the same model.
std::vector<Plan> more_slices(const Model& model, const RecipeBook& recipes, const Plan& plan);

/// Plans in which one group has no slices any more.
std::vector<Plan> fewer_slices(const Plan& plan);

}  // namespace partita::search
