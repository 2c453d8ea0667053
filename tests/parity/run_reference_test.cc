// The reference against right Programs under every optimizer, and against wrong ones about which one device
// that is lowered by the same code would be wrong too.
#include <gtest/gtest.h>

#include "base/file.h"
#include "lower/lower.h"
#include "model/rewrite/retype.h"
#include "model/seed.h"
#include "plan/recipes/recipe.h"
#include "run/reference.h"

namespace partita::run {
namespace {

Model captured(DType dtype) {
  std::string path = std::string(PARTITA_SOURCE_DIR) + "/tests/data/gpt2-tiny.model.json";
  return retype(parse_model(read_file(path), path), dtype);
}

VerifyReport verify(const Model& model, const Lowered& tried, const OptimizerSpec& optimizer,
                    double tolerance = 1e-9) {
  return partita_run_api(kRunApiVersion)
      ->verify({tried.model, tried.program, leaves_of(tried.model, tried.atoms)}, {model, optimizer},
               {.run = {.steps = 3, .batch = {.ignored_labels = true}}, .tolerance = tolerance});
}

TEST(Reference, EqualsProgramsUnderEveryOptimizer) {
  const OptimizerSpec specs[] = {
      {.name = "none"},
      {.name = "adamw", .lr = 1e-2, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-6, .weight_decay = 0.1},
      {.name = "adam", .weight_decay = 0.1, .clip = 0.01},
      {.name = "sgd", .lr = 0.1, .momentum = 0.9, .dampening = 0.25},
      {.name = "sgd", .lr = 0.1, .weight_decay = 0, .momentum = 0.9, .nesterov = true, .clip = 0.01},
      {.name = "adamw", .clip = 0.01, .precision = {.loss_scale = 8}},
      {.name = "adamw", .groups = {{.params = {"*.bias"}, .lr = 0.1, .weight_decay = 0}}},
  };
  Model model = captured(DType::kFloat64);
  for (const OptimizerSpec& spec : specs) {
    Lowered tried = lower::lower(model, recipe(model, {.dp = 2, .optimizer = spec}));
    VerifyReport report = verify(model, tried, spec);
    EXPECT_TRUE(report.equal) << spec.name << " " << report.worst_parameter << " " << report.worst_error;
  }
}

TEST(Reference, KeepsMasterCopies) {
  Model model = captured(DType::kFloat32);
  OptimizerSpec spec{.clip = 0.01, .precision = {.grad = DType::kFloat64, .master = DType::kFloat64}};
  VerifyReport report =
      verify(model, lower::lower(model, recipe(model, {.dp = 2, .optimizer = spec})), spec, 1e-3);
  EXPECT_TRUE(report.equal) << report.worst_parameter << " " << report.worst_error;
}

// In double precision a step overflows where the square of its norm does.
TEST(Reference, SkipsAStepThatItsLossScaleMakesOverflow) {
  Model model = captured(DType::kFloat64);
  OptimizerSpec spec{.precision = {.loss_scale = 1e200}};
  Lowered tried = lower::lower(model, recipe(model, {.dp = 2, .optimizer = spec}));
  EXPECT_TRUE(verify(model, tried, spec).equal);
  for (const StepValues& step : partita_run_api(kRunApiVersion)->reference({model, spec}, {.steps = 3}))
    EXPECT_TRUE(step.skipped);
}

/// Calls `change` for the first instruction of every body that it wants; how many it changed.
int change_each(Program& program, const std::function<bool(std::vector<Instr>&, size_t)>& change) {
  int changed = 0;
  for (Body& body : program.bodies)
    for (size_t i = 0; i < body.instrs.size(); ++i)
      if (change(body.instrs, i)) {
        ++changed;
        break;
      }
  return changed;
}

// As where two gradients lie in one storage.
TEST(Reference, AGradientThatIsClippedTwiceDiffers) {
  Model model = captured(DType::kFloat64);
  OptimizerSpec spec{.name = "sgd", .clip = 1e-4};
  Lowered tried = lower::lower(model, recipe(model, {.dp = 2, .optimizer = spec}));
  ASSERT_TRUE(verify(model, tried, spec).equal);
  EXPECT_GT(change_each(tried.program,
                        [](std::vector<Instr>& instrs, size_t i) {
                          if (instrs[i].kind != InstrKind::kClip) return false;
                          Instr again = instrs[i];
                          again.in[0] = again.out[0];
                          again.drop.clear();
                          instrs.insert(instrs.begin() + static_cast<int64_t>(i) + 1, again);
                          return true;
                        }),
            0);
  VerifyReport report = verify(model, tried, spec);
  EXPECT_FALSE(report.equal);
  EXPECT_GT(report.max_grad_error, 0.5);
}

// As where another tensor of ones is taken for the gradient of the loss.
TEST(Reference, ALossScaleThatGradientsDoNotHaveDiffers) {
  Model model = captured(DType::kFloat64);
  OptimizerSpec spec{.name = "sgd", .precision = {.loss_scale = 8}};
  Lowered tried = lower::lower(model, recipe(model, {.dp = 2, .optimizer = spec}));
  ASSERT_TRUE(verify(model, tried, spec).equal);
  EXPECT_GT(change_each(tried.program,
                        [](std::vector<Instr>& instrs, size_t i) {
                          if (instrs[i].kind != InstrKind::kScale) return false;
                          instrs[i].kind = InstrKind::kMove;
                          return true;
                        }),
            0);
  VerifyReport report = verify(model, tried, spec);
  EXPECT_FALSE(report.equal);
  EXPECT_GT(report.max_grad_error, 0.8);  // an eighth of the gradients
}

// As where there is no optimizer that would take it out again.
TEST(Reference, ALossScaleThatStaysInGradientsDiffers) {
  Model model = captured(DType::kFloat64);
  OptimizerSpec spec{.name = "none"};
  Lowered tried = lower::lower(model, recipe(model, {.dp = 2, .optimizer = spec}));
  ASSERT_TRUE(verify(model, tried, spec).equal);
  TensorId seed = loss_gradient(tried.model);
  EXPECT_GT(change_each(tried.program,
                        [&](std::vector<Instr>& instrs, size_t i) {
                          const Instr made = instrs[i];
                          if (made.kind != InstrKind::kCompute || tried.model[made.op].outputs[0] != seed)
                            return false;
                          instrs.insert(instrs.begin() + static_cast<int64_t>(i) + 1,
                                        {.kind = InstrKind::kScale,
                                         .in = {made.out[0]},
                                         .out = {made.out[0]},
                                         .types = {made.types[0]}});
                          return true;
                        }),
            0);
  tried.program.optimizer.precision.loss_scale = 8;
  EXPECT_NEAR(verify(model, tried, spec).max_grad_error, 7, 1e-9);
}

}  // namespace
}  // namespace partita::run
