// Partita from C++, without torch or Python: a step by name, a plan by recipe, what two ranks would execute.
#include <cstdio>

#include "lower/lower.h"
#include "model/build/build.h"
#include "plan/recipe.h"

int main() {
  partita::Model model = partita::build_model(*partita::find_preset("gpt2-tiny"));
  partita::Plan plan = partita::recipe(model, {.tp = 2});
  partita::Lowered lowered = partita::lower(model, plan);
  std::printf("%s: %zu ops, %zu ranks\n", model.name.c_str(), model.ops.size(), lowered.program.ranks.size());
}
