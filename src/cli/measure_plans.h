#pragma once

#include <functional>
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
Seconds mean(const std::vector<Seconds>& values);

/// Recipes in which ops have the shapes that plans for so many ranks give them: whole batches, micro-batches,
/// heads and hidden in pieces, weight gradients apart, the loss in pieces.
std::vector<RecipeSpec> usual_plans(int ranks);

/// A plan of a step as it ran on threads.
struct PlanRun {
  std::string name;
  Lowered lowered;
  Seconds seconds = 0;            // of a step, the middle of rounds, what all took in a round taken out
  std::vector<OpSample> samples;  // every instruction once, the mean of its calls; where asked for
};

/// A plan to run.
struct PlanTrial {
  std::string name;
  const Model& model;
  HostViews given;  // constants, and a batch where the step needs a certain one
  Plan plan;
};

/// Runs all of them once, then all again, `rounds` times, so that what the machine does beside meets all of
/// them alike; those that cannot be lowered are left out. `samples`: also with an eye on every instruction.
/// `say`: called with what runs next.
std::vector<PlanRun> run_plans(const std::vector<PlanTrial>& trials, int rounds, bool samples,
                               const std::function<void(const std::string&)>& say);

}  // namespace partita
