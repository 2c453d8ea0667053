#include <gtest/gtest.h>

#include "certify/certificate.h"
#include "layout/atoms.h"
#include "lower/lower.h"
#include "lower/unmade.h"
#include "model/build/build.h"
#include "plan/recipes/recipe.h"

namespace partita::prove {
namespace {

struct Case {
  const char* preset;
  RecipeSpec spec;
};
// Ops taken apart, tokens in pieces with masks and with a merge, packed heads, loss in pieces, overlap.
const Case kCases[] = {
    {"gpt2-tiny", {.dp = 2}},
    {"gpt2-tiny", {.tp = 2, .loss_pieces = 2}},
    {"llama-tiny", {.tp = 2, .sequence = true}},
    {"llama-tiny", {.cp = 2}},
    {"llama-tiny", {.cp = 2, .merge = true}},
    {"mixtral-tiny", {.dp = 2, .experts = true}},
    {"evoformer-tiny", {.dp = 2, .zero = 3, .overlap = true}},
};

TEST(Unmade, WhatIsWrittenIsReadBack) {
  for (const Case& one : kCases) {
    Model model = build_model(*find_preset(one.preset), {.batch = 4});
    Lowered lowered = lower::lower(model, recipe(model, one.spec));
    ASSERT_FALSE(check(lowered.model).empty()) << "nothing is left over in " << one.preset;
    auto [named, program] = without_unmade(lowered.model, lowered.program);
    Model read = parse_model(to_json(named), "model.json");
    Program again = parse_program(to_json(program, named), read, "program.json");
    EXPECT_EQ(again, program) << one.preset;
    EXPECT_EQ(certify::certify(read, find_atoms(read), again), std::vector<std::string>{}) << one.preset;
  }
}

TEST(Unmade, AWholeModelStays) {
  Model model = build_model(*find_preset("gpt2-tiny"), {.batch = 4});
  Lowered lowered = lower::lower(model, one_device_plan(model, {}));
  auto [named, program] = without_unmade(lowered.model, lowered.program);
  EXPECT_EQ(named, lowered.model);
  EXPECT_EQ(program, lowered.program);
}

}  // namespace
}  // namespace partita::prove
