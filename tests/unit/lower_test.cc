#include "lower/lower.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/json.h"
#include "model/build/build.h"
#include "plan/design.h"
#include "plan/recipe.h"
#include "program/certificate.h"
#include "program/check.h"

namespace partita {
namespace {

Model captured(const std::string& name) {
  std::string file = fmt::format("{}/tests/data/{}.model.json", PARTITA_SOURCE_DIR, name);
  return parse_model(read_file(file), file);
}

struct Case {
  const char* model;
  RecipeSpec spec;
};

class LowerEvery : public testing::TestWithParam<Case> {};

// The certificate knows nothing of the lowering: what it accepts computes the model.
TEST_P(LowerEvery, IsCertified) {
  Model model = captured(GetParam().model);
  Lowered lowered = lower(model, recipe(model, GetParam().spec));
  EXPECT_EQ(check(lowered.program, lowered.model), std::vector<std::string>{});
  EXPECT_EQ(certify(lowered.model, lowered.atoms, lowered.program), std::vector<std::string>{});
}

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const char* model : {"gpt2-tiny", "llama-tiny"})
    for (RecipeSpec spec :
         {RecipeSpec{}, RecipeSpec{.dp = 2}, RecipeSpec{.dp = 3}, RecipeSpec{.tp = 2}, RecipeSpec{.tp = 3},
          RecipeSpec{.tp = 4}, RecipeSpec{.dp = 2, .zero = 3}, RecipeSpec{.dp = 3, .zero = 3},
          RecipeSpec{.pp = 2}, RecipeSpec{.dp = 2, .tp = 2}, RecipeSpec{.microbatches = 3},
          RecipeSpec{.dp = 3, .zero = 1}, RecipeSpec{.dp = 2, .tp = 2, .zero = 1, .microbatches = 2},
          RecipeSpec{.dp = 2, .zero = 2, .microbatches = 2}, RecipeSpec{.dp = 4, .zero = 3, .replicas = 2},
          RecipeSpec{.tp = 2, .sequence = true}, RecipeSpec{.recompute = true},
          RecipeSpec{.dp = 2, .zero = 3, .recompute = true, .microbatches = 2}})
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
          RecipeSpec{.dp = 2, .tp = 2, .pp = 2, .zero = 3, .microbatches = 3}})
      out.push_back({model, spec});
  return out;
}

INSTANTIATE_TEST_SUITE_P(Recipes, LowerEvery, testing::ValuesIn(cases()), [](const auto& info) {
  std::string name = fmt::format("{}_{}", info.param.model, summary(info.param.spec));
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
});

// Relative positions are a parameter of one layer that all layers of both stages read: what its gradient is
// computed from travels before any rank sums it in place.
TEST(Lower, GradientsComputedAfterTheLoopFromSeveralStages) {
  Model model = build_model(
      R"({"model_type": "t5", "num_layers": 2, "d_model": 16, "d_kv": 4, "num_heads": 4, "d_ff": 32, "vocab_size": 32})",
      "config.json", {.batch = 8, .seq = 8});
  for (const char* schedule : {"1f1b", "chimera", "zb-h1"}) {
    Lowered lowered =
        lower(model, recipe(model, {.dp = 2, .pp = 2, .microbatches = 2, .schedule = schedule}));
    EXPECT_EQ(certify(lowered.model, lowered.atoms, lowered.program), std::vector<std::string>{}) << schedule;
  }
}

// By hand in C++: the same words as partita.design in Python.
TEST(Lower, DesignsByHandAreCertified) {
  Model model = captured("gpt2-tiny4");
  Design design(model, 4);
  design.split("*", "batch", 2).loop({"h.*.mlp"}, "hidden", 2).store("*", "gradient").microbatches(2);
  std::vector<std::vector<std::string>> parts = cut(model, 2);
  design.assign(parts[0], {0, 1})
      .assign(parts[1], {2, 3})
      .order(std::vector<std::string>{"0F0,0F1,0I1,0I0,0W0,0W1", "1F0,1F1,1B1,1B0"});
  Lowered lowered = lower(model, design.plan());
  EXPECT_EQ(certify(lowered.model, lowered.atoms, lowered.program), std::vector<std::string>{});
  EXPECT_THROW(design.split("h.*.atn", "heads", 2), InputError);
}

size_t count(const Program& program, InstrKind kind) {
  size_t n = 0;
  for (const Body& body : program.bodies)
    for (const Instr& instr : body.instrs) n += instr.kind == kind;
  return n;
}

// Megatron's count, found from atoms: one sum for attention and one for the MLP, forward and backward, in
// each layer.
TEST(Lower, TensorParallelSumsAsOftenAsMegatron) {
  for (const char* name : {"gpt2-tiny", "llama-tiny"}) {
    Model model = captured(name);
    Lowered lowered = lower(model, recipe(model, {.tp = 2}));
    size_t sums = 0;
    for (const Action& action : lowered.program.ranks[0].actions)
      if (action.kind == ActionKind::kRun)
        for (const Instr& instr : lowered.program[action.body].instrs)
          sums += instr.kind == InstrKind::kAllReduce;
    EXPECT_EQ(sums, 8u) << name;
    EXPECT_EQ(count(lowered.program, InstrKind::kAllGather), 0u) << name;
  }
}

TEST(Lower, OneDeviceRunsTheCapturedOpsAsTheyAre) {
  Model model = captured("gpt2-tiny");
  Lowered lowered = lower(model, one_device_plan(model, {.name = "none"}));
  EXPECT_EQ(lowered.model, model);
  for (const Body& body : lowered.program.bodies)
    for (const Instr& instr : body.instrs) EXPECT_EQ(instr.kind, InstrKind::kCompute);
}

TEST(Lower, EqualMicroBatchesAndRanksShareBodies) {
  Model model = captured("gpt2-tiny4");
  Lowered few = lower(model, recipe(model, {.dp = 2, .microbatches = 2}));
  Lowered many = lower(model, recipe(model, {.dp = 4, .microbatches = 2}));
  EXPECT_EQ(few.program.bodies.size(), many.program.bodies.size());
}

TEST(Lower, RefusesAPlanForAnotherModel) {
  Plan plan = recipe(captured("gpt2-tiny"), {.dp = 2});
  EXPECT_THROW(lower(captured("llama-tiny"), plan), InputError);
}

TEST(Lower, RefusesMorePiecesThanTheBatchHas) {
  Model model = captured("gpt2-tiny");
  try {
    lower(model, recipe(model, {.dp = 2, .microbatches = 3}));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(std::string(error.what()),
              "plan: split: input_ids:0.0 has length 4, which cannot feed 6 pieces (dp=2 x micro-batches=3); "
              "use fewer "
              "ranks or micro-batches, or a larger batch");
  }
}

}  // namespace
}  // namespace partita
