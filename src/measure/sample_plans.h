#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cost/calibration.h"
#include "measure/timed_plan.h"
#include "plan/recipes/recipe.h"

namespace partita::measure {

/// Recipes in which ops have the shapes that plans for so many ranks give them: whole batches, micro-batches,
/// heads and hidden in pieces, weight gradients apart, the loss in pieces.
std::vector<RecipeSpec> usual_plans(int ranks);

/// A plan of a step as it ran on threads.
struct PlanRun {
  std::string name;
  Lowered lowered;
  Seconds seconds = 0;            // of a step, seconds_in_turns
  std::vector<OpSample> samples;  // every instruction once, the mean of its calls
};

/// Runs as many at once as the machine has memory for: all of them once, then all again, `rounds` times, so
/// that what the machine does beside meets all of them alike; in each round as they are and with an eye on
/// every instruction. Those that cannot be lowered are left out. `say`: called with what runs next.
std::vector<PlanRun> sample_plans(const std::vector<PlanTrial>& trials, int rounds,
                                  const std::function<void(const std::string&)>& say);

}  // namespace partita::measure
