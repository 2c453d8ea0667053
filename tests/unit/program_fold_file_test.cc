// Programs of classes as files: they come back as they were, read as ranks they are what lowering makes of
// every rank, and what is wrong with one is said with its place.
#include <gtest/gtest.h>

#include "base/error.h"
#include "certify/certificate.h"
#include "lower/lower.h"
#include "model/build/build.h"
#include "plan/recipes/recipe.h"

namespace partita::prove {
namespace {

struct Case {
  const char* preset;
  RecipeSpec spec;
  int64_t batch = 8;
};
const Case kCases[] = {{"gpt2-tiny", {.dp = 4, .microbatches = 2}},
                       {"gpt2-tiny", {.dp = 3, .microbatches = 2}, 7},
                       {"gpt2-tiny", {.dp = 4, .zero = 3, .replicas = 2}},
                       {"llama-tiny", {.tp = 4, .sequence = true}},
                       {"llama-tiny", {.dp = 3, .zero = 3}},
                       {"gpt2-tiny", {.dp = 2, .tp = 2, .pp = 2, .microbatches = 4}},
                       {"mixtral-tiny", {.dp = 2, .experts = true, .overlap = true}}};

struct Made {
  Prepared prepared;
  FoldedProgram folded;
};

Made made(const Case& c) {
  Model model = build_model(*find_preset(c.preset), {.batch = c.batch});
  Plan plan = recipe(model, c.spec);
  Made out{.prepared = prepare(model, form_of(plan))};
  out.folded = lower_folded(out.prepared, plan);
  return out;
}

TEST(FoldFile, ComesBackAsItWas) {
  for (const Case& c : kCases) {
    SCOPED_TRACE(summary(c.spec));
    auto [prepared, folded] = made(c);
    std::string text = to_json(folded, prepared.model);
    FoldedProgram back = parse_folded(text, prepared.model, "p.json");
    EXPECT_EQ(back, folded);
    EXPECT_EQ(to_json(back, prepared.model), text);
    EXPECT_EQ(certify::certify(prepared.model, prepared.atoms, back.program, back.fold),
              std::vector<std::string>{});
  }
}

TEST(FoldFile, OfRanksHasNoFold) {
  auto [prepared, folded] = made(kCases[1]);
  Program ranks = expand(folded.program, folded.fold);
  std::string text = to_json(ranks, prepared.model);
  EXPECT_EQ(text.find("\"fold\""), text.npos);
  EXPECT_EQ(text.find("\"steps\""), text.npos);
  EXPECT_EQ(parse_folded(text, prepared.model, "p.json"), (FoldedProgram{ranks, {}}));
  EXPECT_EQ(to_json(FoldedProgram{ranks, {}}, prepared.model), text);
}

struct Edit {
  const char *from, *to, *message;
};

TEST(FoldFile, RefusesWithThePlace) {
  auto [prepared, folded] = made(kCases[0]);
  const std::string text = to_json(folded, prepared.model);
  const Edit kEdits[] = {
      {"\"axes\": [4]", "\"axis\": [4]", "p.json: fold: unknown key \"axis\"; did you mean 'axes'?"},
      {"\"axes\": [4]", "\"axes\": [0]", "p.json: fold.axes[0]: is 0, needs to be from 1 to 1073741824"},
      {"\"axes\": [4]", "\"axes\": [8]",
       "p.json: a site has 4 devices for a mesh of other size; lower the plan again"},
      {"[[0, 1, 2, 3]]", "[[0, 1, 2, 2]]", "p.json: device 2 has no place, or two; lower the plan again"},
      {"\"coordinates\": [[0, 4]]", "\"coordinates\": [[0, 3]]",
       "p.json: site 0 has 4 ranks, its classes have 3; lower the plan again"},
      {"\"coordinates\": [[0, 4]]", "\"coordinates\": [[4, 4]]",
       "p.json: fold.classes[0].coordinates[0]: is empty; a class has at least one rank"},
      {"\"coordinates\": [[0, 4]]", "\"coordinates\": []",
       "p.json: fold.classes[0].coordinates: has 0 ranges, needs one for each of 1 axes"},
      {"\"group_axes\": [[0]]", "\"group_axes\": [[0, 0]]",
       "p.json: class 0 is not one of ranks of the mesh; lower the plan again"},
      {", [2]]", ", [2, 1]]", "steps, the mesh has 1 axes to move along"},
      {", [2]]", ", [2], 1]", "needs [begin, end), and steps where it moves"},
  };
  for (const Edit& edit : kEdits) {
    std::string changed = text;
    size_t at = changed.find(edit.from);
    ASSERT_NE(at, text.npos) << edit.from;
    changed.replace(at, std::string(edit.from).size(), edit.to);
    try {
      parse_folded(changed, prepared.model, "p.json");
      ADD_FAILURE() << edit.to;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find(edit.message), text.npos) << error.what();
    }
  }
}

TEST(FoldFile, IsNoProgramOfRanks) {
  auto [prepared, folded] = made(kCases[0]);
  try {
    parse_program(to_json(folded, prepared.model), prepared.model, "p.json");
    ADD_FAILURE();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "p.json: fold: these are classes of ranks, and all ranks are needed here; lower without "
                 "--folded");
  }
}

// Steps without classes would be read by nobody.
TEST(FoldFile, StepsNeedClasses) {
  auto [prepared, folded] = made(kCases[2]);
  for (Body& body : folded.program.bodies)
    for (Instr& instr : body.instrs)
      if (instr.steps != Steps{}) {
        try {
          parse_folded(to_json(folded.program, prepared.model), prepared.model, "p.json");
          ADD_FAILURE();
        } catch (const InputError& error) {
          EXPECT_NE(std::string(error.what()).find("this program has no `fold`"), std::string::npos)
              << error.what();
        }
        return;
      }
  ADD_FAILURE() << "no slice moves";
}

}  // namespace
}  // namespace partita::prove
