// Partita from C++, without torch or Python: a step by name, a plan by recipe, what two ranks would execute.
#include <cstdio>

#include "lower/lower.h"
#include "model/build/build.h"
#include "plan/recipes/recipe.h"

int main() {
  partita::model::Model model = partita::model::build_model(*partita::model::find_preset("gpt2-tiny"));
  partita::plan::Plan plan = partita::plan::recipe(model, {.tp = 2});
  partita::lower::Lowered lowered = partita::lower::lower(model, plan);
  std::printf("%s: %zu ops, %zu ranks\n", model.name.c_str(), model.ops.size(), lowered.program.ranks.size());
}
