// Captured steps on one rank, straight through the dispatcher. That they equal eager PyTorch bit for bit is
// tested from Python, where eager is at hand (tests/runs).
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "model/build/build.h"
#include "model/rewrite/recompute.h"
#include "model/rewrite/retype.h"
#include "run/session.h"
#include "run/straight_line.h"

namespace partita::run {
namespace {

Model captured(const std::string& name) {
  std::string path = std::string(PARTITA_SOURCE_DIR) + "/tests/data/" + name + ".model.json";
  return parse_model(read_file(path), path);
}

RunReport run(const Model& model, const OptimizerSpec& optimizer, int64_t steps) {
  LeafSizes leaves = plain_leaves(model);
  Program program = straight_line(model, optimizer, leaves);
  return partita_run_api(kRunApiVersion)
      ->run({model, program, leaves}, {.steps = steps, .keep_values = true});
}

class Captured : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Models, Captured, testing::Values("gpt2-tiny", "llama-tiny"));

TEST_P(Captured, GivesEveryGradientAndTheSameOnesAgain) {
  Model model = captured(GetParam());
  RunReport report = run(model, {.name = "none"}, 1), again = run(model, {.name = "none"}, 1);
  EXPECT_TRUE(std::isfinite(report.steps[0].loss));
  EXPECT_EQ(report.values.gradients.size(), model.gradients.size());
  EXPECT_EQ(report.values.gradients, again.values.gradients);
  EXPECT_EQ(report.peak_bytes, again.peak_bytes);
  EXPECT_TRUE(report.values.parameters.empty());
}

TEST(Recomputed, StepsGiveTheSameGradientsInLessMemory) {
  Model t5 = build_model(R"({"model_type": "t5", "num_layers": 3, "d_model": 32, "d_kv": 8, "num_heads": 4,
                             "d_ff": 48, "vocab_size": 96})",
                         "t5", {4, 32});
  using Case = std::pair<Model, Recompute>;
  for (const auto& [model, how] : {Case{captured("gpt2-tiny4"), Recompute::kFull}, Case{t5, Recompute::kFull},
                                   Case{t5, Recompute::kSelective}}) {
    Model again = recompute(model, recompute_groups(model, how));
    EXPECT_EQ(check(again), std::vector<std::string>{});
    RunReport plain = run(model, {.name = "none"}, 1), less = run(again, {.name = "none"}, 1);
    EXPECT_EQ(less.values.gradients, plain.values.gradients);
    EXPECT_LT(less.peak_bytes[0], plain.peak_bytes[0]);
  }
}

TEST_P(Captured, TrainingLowersTheLossOfOneBatch) {
  Model model = captured(GetParam());
  LeafSizes leaves = plain_leaves(model);
  for (const OptimizerSpec& optimizer : {OptimizerSpec{.name = "adamw", .lr = 1e-2},
                                         OptimizerSpec{.name = "sgd", .lr = 0.5, .momentum = 0.9}}) {
    HostTensors weights = draw_weights(model, 0, {}), batch = draw_batch(model, 0, {});
    Program program = straight_line(model, optimizer, leaves);
    Session session({model, program, leaves}, views_of(weights), {});
    double first = session.step(views_of(batch)).loss, last = first;
    for (int i = 0; i < 9; ++i) last = session.step(views_of(batch)).loss;
    EXPECT_LT(last, first * 0.9) << optimizer.name;
  }
}

TEST_P(Captured, FirstAdamStepIsTheFormula) {
  Model model = retype(captured(GetParam()), DType::kFloat64);
  OptimizerSpec spec{.name = "adamw", .lr = 1e-3, .weight_decay = 0.1};
  RunReport report = run(model, spec, 1);
  HostTensors before = draw_weights(model, 0, {});
  for (const auto& [name, gradient] : report.values.gradients) {
    std::vector<double> g = to_doubles(gradient), p = to_doubles(before.at(name)),
                        updated = to_doubles(report.values.parameters.at(name));
    for (size_t i = 0; i < g.size(); ++i) {
      double expected =
          p[i] * (1 - spec.lr * spec.weight_decay) - spec.lr * g[i] / (std::abs(g[i]) + spec.eps);
      ASSERT_NEAR(updated[i], expected, 1e-12) << name;
    }
  }
}

TEST_P(Captured, VerifyAcceptsTheStepItself) {
  Model model = retype(captured(GetParam()), DType::kFloat64);
  LeafSizes leaves = plain_leaves(model);
  Program program = straight_line(model, {}, leaves);
  VerifyReport report =
      partita_run_api(kRunApiVersion)
          ->verify({model, program, leaves}, {model, program.optimizer}, {.run = {.steps = 3}});
  EXPECT_TRUE(report.equal);
  EXPECT_LT(report.worst_error, 1e-12);  // the fused kernels round elsewhere than torch::optim
}

TEST(Verify, NamesTheParameterThatDiffers) {
  Model model = retype(captured("gpt2-tiny"), DType::kFloat64);
  LeafSizes leaves = plain_leaves(model);
  Program program = straight_line(model, {}, leaves), broken = program;
  // Twice the gradient of one parameter: a wrong scale.
  auto optimize = std::find_if(broken.bodies[0].instrs.begin(), broken.bodies[0].instrs.end(),
                               [](const Instr& instr) { return instr.kind == InstrKind::kOptimize; });
  Slot parameter = optimize->in[0], gradient = optimize->in[1];
  broken.bodies[0].instrs.insert(optimize,
                                 {.kind = InstrKind::kAdd, .in = {gradient, gradient}, .out = {gradient}});
  std::string name;
  for (const Load& load : program.ranks[0].loads)
    if (load.slot == parameter) name = model[load.tensor].name;
  VerifyReport report =
      partita_run_api(kRunApiVersion)
          ->verify({model, broken, leaves}, {model, program.optimizer}, {.run = {.steps = 1}});
  EXPECT_FALSE(report.equal);
  EXPECT_NEAR(report.max_grad_error, 1, 1e-12);
  EXPECT_EQ(report.worst_parameter, name);
  EXPECT_EQ(report.loss_error, 0);
}

TEST(Session, TellsWhichOpFailed) {
  Model model = captured("gpt2-tiny");
  LeafSizes leaves = plain_leaves(model);
  Program program = straight_line(model, {.name = "none"}, leaves);
  auto view = std::find_if(program.bodies[0].instrs.begin(), program.bodies[0].instrs.end(),
                           [&](const Instr& instr) { return model[instr.op].target == "aten.view.default"; });
  view->args[1] = Arg::list({7, 7});
  Session session({model, program, leaves}, views_of(draw_weights(model, 0, {})), {});
  try {
    session.step(views_of(draw_batch(model, 0, {})));
    FAIL();
  } catch (const RunError& error) {
    std::string text = error.what();
    EXPECT_EQ(text.find("rank 0, step 1, action 0 (run step, " + model[view->op].name + "): "), 0) << text;
    EXPECT_EQ(text.find("frame #"), std::string::npos) << text;
  }
  EXPECT_THROW(session.step(views_of(draw_batch(model, 0, {}))), RunError);
}

TEST(Session, WrongWeightsAndBatchesAreNamed) {
  Model model = captured("gpt2-tiny");
  LeafSizes leaves = plain_leaves(model);
  Program program = straight_line(model, {.name = "none"}, leaves);
  HostTensors weights = draw_weights(model, 0, {}), batch = draw_batch(model, 0, {});
  Session session({model, program, leaves}, views_of(weights), {});
  auto complaint = [](auto&& act) -> std::string {
    try {
      act();
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  HostTensors renamed = batch;
  renamed["input_idz"] = renamed.extract("input_ids").mapped();
  EXPECT_EQ(complaint([&] { session.step(views_of(renamed)); }),
            "batch: no value for input_ids; did you mean 'input_idz'?");
  HostTensors small = batch;
  small["input_ids"] = HostTensor({1, 2}, DType::kInt64);
  EXPECT_NE(complaint([&] {
              session.step(views_of(small));
            }).find("batch: input_ids is int64[1, 2], the model needs int64["),
            std::string::npos);
  HostTensors extra = batch;
  extra["mask"] = HostTensor({1}, DType::kInt64);
  EXPECT_EQ(complaint([&] { session.step(views_of(extra)); }), "batch: the model has no input mask");
  weights.erase(weights.begin());
  EXPECT_NE(complaint([&] {
              Session({model, program, leaves}, views_of(weights), {});
            }).find("weights: no value for "),
            std::string::npos);
}

}  // namespace
}  // namespace partita::run
