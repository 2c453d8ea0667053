#include <gtest/gtest.h>

#include "certify/certificate.h"
#include "lower/lower.h"
#include "lower_program.h"
#include "plan/recipes/recipe.h"
#include "program/check.h"

namespace partita::prove {
namespace {

struct Case {
  const char* model;
  RecipeSpec spec;
};

class LowerEvery : public testing::TestWithParam<Case> {};

// The certificate knows nothing of the lowering: what it accepts computes the model.
TEST_P(LowerEvery, IsCertified) {
  Model model = captured(GetParam().model);
  Lowered lowered = lower::lower(model, recipe(model, GetParam().spec));
  EXPECT_EQ(check(lowered.program, lowered.model), std::vector<std::string>{});
  EXPECT_EQ(certify::certify(lowered.model, lowered.atoms, lowered.program), std::vector<std::string>{});
}

/// Numbers of bodies may differ; what each rank runs may not.
void expect_same(const Program& a, const Program& b) {
  ASSERT_EQ(a.ranks.size(), b.ranks.size());
  for (size_t r = 0; r < a.ranks.size(); ++r) {
    RankProgram mine = a.ranks[r], theirs = b.ranks[r];
    ASSERT_EQ(mine.actions.size(), theirs.actions.size());
    for (size_t k = 0; k < mine.actions.size(); ++k) {
      if (mine.actions[k].kind != ActionKind::kRun) continue;
      EXPECT_EQ(a[mine.actions[k].body], b[theirs.actions[k].body]) << "rank " << r << ", action " << k;
      mine.actions[k].body = theirs.actions[k].body;
    }
    EXPECT_EQ(mine, theirs) << "rank " << r;
  }
}

TEST_P(LowerEvery, FoldsIntoClasses) {
  Model model = captured(GetParam().model);
  Plan plan = recipe(model, GetParam().spec);
  PassLog log;
  Prepared prepared = prepare(model, form_of(plan));
  Program whole = lower::lower(prepared, plan, log);
  FoldedProgram folded = lower_folded(prepared, plan);
  EXPECT_EQ(certify::certify(prepared.model, prepared.atoms, folded.program, folded.fold),
            std::vector<std::string>{});
  Program expanded = expand(folded.program, folded.fold);
  EXPECT_EQ(expanded.types, whole.types);
  expect_same(expanded, whole);
}

// What is known for all micro-batches at once is still of one of them where ranks meet.
TEST(Lower, RanksThatMeetInDifferentMicrobatchesAreRefused) {
  Model model = captured("gpt2-tiny");
  Lowered lowered = lower::lower(model, recipe(model, {.tp = 2, .microbatches = 2}));
  for (Action& action : lowered.program.ranks[1].actions) action.microbatch = 1 - action.microbatch;
  std::vector<std::string> wrong = certify::certify(lowered.model, lowered.atoms, lowered.program);
  ASSERT_FALSE(wrong.empty());
  EXPECT_NE(wrong[0].find("different parts"), std::string::npos) << wrong[0];
}

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const char* model : {"gpt2-tiny", "llama-tiny"})
    for (RecipeSpec spec : {RecipeSpec{},
                            RecipeSpec{.dp = 2},
                            RecipeSpec{.dp = 3},
                            RecipeSpec{.tp = 2},
                            RecipeSpec{.tp = 3},
                            RecipeSpec{.tp = 4},
                            RecipeSpec{.dp = 2, .zero = 3},
                            RecipeSpec{.dp = 3, .zero = 3},
                            RecipeSpec{.pp = 2},
                            RecipeSpec{.dp = 2, .tp = 2},
                            RecipeSpec{.microbatches = 3},
                            RecipeSpec{.dp = 3, .zero = 1},
                            RecipeSpec{.dp = 2, .tp = 2, .zero = 1, .microbatches = 2},
                            RecipeSpec{.dp = 2, .zero = 2, .microbatches = 2},
                            RecipeSpec{.dp = 4, .zero = 3, .replicas = 2},
                            RecipeSpec{.tp = 2, .sequence = true},
                            RecipeSpec{.cp = 3},
                            RecipeSpec{.dp = 2, .tp = 2, .cp = 2},
                            RecipeSpec{.cp = 2, .merge = true},
                            RecipeSpec{.cp = 3, .merge = true},
                            RecipeSpec{.dp = 2, .tp = 2, .cp = 2, .merge = true, .microbatches = 2},
                            RecipeSpec{.recompute = true},
                            RecipeSpec{.loss_pieces = 3},
                            RecipeSpec{.dp = 2, .zdp = {"*"}, .slices = 2},
                            RecipeSpec{.dp = 3, .zdp = {"*.mlp.*"}, .slices = 4},
                            RecipeSpec{.dp = 2, .zdp = {"*.0.*"}},
                            RecipeSpec{.dp = 2, .pieces = 2, .loss_pieces = 2, .zero = 3, .microbatches = 2},
                            RecipeSpec{.dp = 2, .zero = 3, .recompute = true, .microbatches = 2},
                            RecipeSpec{.dp = 3, .overlap = true},
                            RecipeSpec{.dp = 2, .tp = 2, .overlap = true, .microbatches = 2},
                            RecipeSpec{.dp = 3, .zero = 1, .overlap = true},
                            RecipeSpec{.dp = 2, .zero = 1, .overlap = true, .microbatches = 2},
                            RecipeSpec{.dp = 2, .zero = 2, .overlap = true, .microbatches = 2},
                            RecipeSpec{.dp = 3, .zero = 3, .overlap = true},
                            RecipeSpec{.dp = 4, .zero = 3, .replicas = 2, .overlap = true, .microbatches = 1},
                            RecipeSpec{.dp = 4, .zero = 1, .replicas = 2, .overlap = true},
                            RecipeSpec{.dp = 2, .zdp = {"*"}, .slices = 2, .overlap = true}})
      if (model != std::string_view("llama-tiny") || spec.tp != 3) out.push_back({model, spec});
  for (const char* model : {"gpt2-tiny4", "llama-tiny4"})
    for (RecipeSpec spec :
         {RecipeSpec{.pp = 2, .microbatches = 4}, RecipeSpec{.pp = 4, .microbatches = 4},
          RecipeSpec{.pp = 3, .microbatches = 5}, RecipeSpec{.tp = 2, .pp = 2, .microbatches = 4},
          RecipeSpec{.dp = 2, .pp = 2}, RecipeSpec{.dp = 2, .pp = 2, .microbatches = 2},
          RecipeSpec{.dp = 2, .pp = 2, .zero = 3, .microbatches = 2},
          RecipeSpec{.pp = 4, .microbatches = 4, .schedule = "gpipe"},
          RecipeSpec{.pp = 2, .microbatches = 4, .schedule = "interleaved", .chunks = 2},
          RecipeSpec{.pp = 2, .microbatches = 4, .schedule = "wave", .chunks = 2},
          RecipeSpec{.pp = 2, .microbatches = 4, .schedule = "chimera"},
          RecipeSpec{.dp = 2, .pp = 2, .zero = 3, .microbatches = 4, .schedule = "zb-v"},
          RecipeSpec{.dp = 2, .tp = 2, .pp = 2, .zero = 3, .microbatches = 3},
          RecipeSpec{.dp = 2, .pp = 2, .overlap = true, .microbatches = 2},
          RecipeSpec{.dp = 2, .tp = 2, .pp = 2, .zero = 3, .overlap = true, .microbatches = 3},
          RecipeSpec{.dp = 2, .pp = 2, .zero = 3, .overlap = true, .microbatches = 4, .schedule = "zb-v"}})
      out.push_back({model, spec});
  return out;
}

INSTANTIATE_TEST_SUITE_P(Recipes, LowerEvery, testing::ValuesIn(cases()), [](const auto& info) {
  std::string name = fmt::format("{}_{}", info.param.model, summary(info.param.spec));
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
});

}  // namespace
}  // namespace partita::prove
