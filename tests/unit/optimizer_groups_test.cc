// Groups of the optimizer: in plans, in programs, in the certificate; and plans that fit another step.
#include <gtest/gtest.h>

#include "base/error.h"
#include "certify/certificate.h"
#include "lower/lower.h"
#include "lower_program.h"
#include "plan/fit.h"
#include "plan/recipes/recipe.h"

namespace partita::prove {
namespace {

OptimizerSpec grouped() {
  return {
      .name = "sgd",
      .lr = 0.1,
      .momentum = 0,
      .groups = {{.params = {"*.bias"}, .lr = 0.2, .weight_decay = 0, .momentum = 0.9, .nesterov = true}}};
}

TEST(OptimizerGroups, TheFirstThatNamesAParameterCounts) {
  OptimizerSpec spec = grouped();
  spec.groups.push_back({.params = {"h.0.*", "wte.weight"}, .lr = 3});
  EXPECT_EQ(settings_of(spec, "h.0.mlp.bias"), 1);
  EXPECT_EQ(settings_of(spec, "h.0.mlp.weight"), 2);
  EXPECT_EQ(settings_of(spec, "wte.weight"), 2);
  EXPECT_EQ(settings_of(spec, "ln_f.weight"), 0);
  EXPECT_EQ(numbers_of(spec, 0).lr, 0.1);
  EXPECT_EQ(numbers_of(spec, 2).lr, 3);
  EXPECT_EQ(optimizer_states(spec), 1);  // one group has momentum
}

TEST(OptimizerGroups, PlanAndProgramFilesKeepThem) {
  Model model = captured("gpt2-tiny");
  Plan plan = recipe(model, {.dp = 2, .optimizer = grouped()});
  EXPECT_EQ(parse_plan(to_json(plan), "plan"), plan);
  Lowered lowered = lower::lower(model, plan);
  Program again = parse_program(to_json(lowered.program, lowered.model), lowered.model, "program");
  EXPECT_EQ(again.optimizer.groups, plan.optimizer.groups);
  EXPECT_EQ(again.bodies, lowered.program.bodies);
}

TEST(OptimizerGroups, FilesKeepWhatAGroupDoesNotHave) {
  OptimizerSpec spec{.name = "sgd", .momentum = 0.9, .dampening = 0.3, .nesterov = true};
  spec.groups = {numbers_of(spec, 0), numbers_of(spec, 0)};
  spec.groups[0].dampening = 0;
  spec.groups[1].nesterov = false;
  EXPECT_EQ(read_optimizer(JsonIn(optimizer_json(spec), "optimizer")), spec);
}

TEST(OptimizerGroups, AGroupWithoutParametersIsAFault) {
  Model model = captured("gpt2-tiny");
  Plan plan = recipe(model, {.dp = 2});
  plan.optimizer.groups = {{.params = {"transformer.wpee.weight"}}};
  try {
    lower::lower(model, plan);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(
        std::string(error.what()),
        "plan: optimizer.groups[0]: no trained parameter is called \"transformer.wpee.weight\"; did you mean "
        "'transformer.wpe.weight'?");
  }
}

TEST(OptimizerGroups, TheCertificateRefusesTheNumbersOfAnotherGroup) {
  Model model = captured("gpt2-tiny");
  for (RecipeSpec spec : {RecipeSpec{.dp = 2}, RecipeSpec{.dp = 2, .zero = 3}, RecipeSpec{.tp = 2},
                          RecipeSpec{.pp = 2, .microbatches = 2}}) {
    spec.optimizer = grouped();
    Lowered lowered = lower::lower(model, recipe(model, spec));
    EXPECT_TRUE(certify::certify(lowered.model, lowered.atoms, lowered.program).empty());
    for (Body& body : lowered.program.bodies)
      for (Instr& instr : body.instrs) {
        if (instr.kind != InstrKind::kOptimize) continue;
        instr.settings = 1 - instr.settings;
        std::vector<std::string> broken = certify::certify(lowered.model, lowered.atoms, lowered.program);
        instr.settings = 1 - instr.settings;
        ASSERT_FALSE(broken.empty());
        EXPECT_NE(broken.front().find("by settings"), std::string::npos) << broken.front();
      }
  }
}

/// The loss of the same step, without anything that does not lead to it.
Model forward_of(Model model) {
  std::erase_if(model.ops, [](const Op& op) { return op.backward; });
  model.gradients.clear();
  for (Tensor& tensor : model.tensors) tensor.trainable = false;
  return model;
}

TEST(Fit, APlanOfTrainingRunsForwardAlone) {
  Model model = captured("gpt2-tiny"), forward = forward_of(model);
  for (const RecipeSpec& spec : {RecipeSpec{.dp = 2}, RecipeSpec{.dp = 2, .zero = 3, .recompute = true},
                                 RecipeSpec{.tp = 2}, RecipeSpec{.pp = 2, .microbatches = 2}}) {
    std::optional<Plan> plan = fit(recipe(model, spec), forward);
    ASSERT_TRUE(plan);
    EXPECT_EQ(plan->optimizer.name, "none");
    EXPECT_TRUE(plan->recompute.empty());
    Lowered lowered = lower::lower(forward, *plan);
    EXPECT_TRUE(certify::certify(lowered.model, lowered.atoms, lowered.program).empty());
  }
}

TEST(Fit, AStepThatCannotRunSoHasNone) {
  Model model = captured("gpt2-tiny");
  Plan plan = recipe(model, {.dp = 4});
  plan.stages[0].ops = {"nothing/*"};
  EXPECT_FALSE(fit(plan, model));
}

}  // namespace
}  // namespace partita::prove
