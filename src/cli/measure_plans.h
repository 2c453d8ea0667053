#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lower/lower.h"
#include "plan/recipe.h"
#include "profile/calibration.h"
#include "run/api.h"

namespace partita {

/// The middle, not the least: a step holds its ops' slower calls too, and the least of each would add up to
/// less. REQUIRES: not empty.
Seconds middle(std::vector<Seconds> values);

/// Recipes in which ops have the shapes that plans for so many ranks give them: whole batches, micro-batches,
/// heads and hidden in pieces, weight gradients apart, the loss in pieces.
std::vector<RecipeSpec> usual_plans(int ranks);

/// A plan of a step as it ran on threads.
struct PlanRun {
  std::string name;  // "dp2"
  Lowered lowered;
  Seconds seconds = 0;            // of a step, the middle
  std::vector<OpSample> samples;  // every instruction once, the middle of its calls on all ranks
};
/// Runs `rounds` steps after a first that does not count; nothing where the recipe does not apply to the
/// model. `given`: constants, and a batch where the step needs a certain one.
std::optional<PlanRun> run_plan(const Model& model, const HostViews& given, const RecipeSpec& spec, int rounds);

}  // namespace partita
