// Lowered plans on thread ranks: equal to one device, and their bytes as predicted.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json.h"
#include "certify/made.h"
#include "lower/lower.h"
#include "model/rewrite/retype.h"
#include "plan/recipes/recipe.h"
#include "program/memory.h"
#include "run/api.h"

namespace partita::run {
namespace {

Model captured(const std::string& name, DType dtype) {
  std::string path = std::string(PARTITA_SOURCE_DIR) + "/tests/data/" + name + ".model.json";
  return retype(parse_model(read_file(path), path), dtype);
}

struct Case {
  const char* name;
  const char* suffix;  // of the captured model
  RecipeSpec spec;
};
const Case kCases[] = {
    {"one", "tiny", {}},
    {"dp2", "tiny", {.dp = 2}},
    {"dp3", "tiny", {.dp = 3}},
    {"tp2", "tiny", {.tp = 2}},
    {"zero3", "tiny", {.dp = 2, .zero = 3}},
    {"pp2", "tiny", {.pp = 2, .microbatches = 4}},
    {"dp2pp2", "tiny4", {.dp = 2, .pp = 2, .microbatches = 4}},
};

class Lowering : public testing::TestWithParam<std::tuple<const char*, Case>> {};
INSTANTIATE_TEST_SUITE_P(Plans, Lowering,
                         testing::Combine(testing::Values("gpt2", "llama"), testing::ValuesIn(kCases)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)) + "_" + std::get<1>(info.param).name;
                         });

TEST_P(Lowering, EqualsOneDeviceInPredictedBytes) {
  auto [name, test] = GetParam();
  Model model = captured(fmt::format("{}-{}", name, test.suffix), DType::kFloat64);
  Lowered lowered = lower::lower(model, recipe(model, test.spec));
  VerifyReport report =
      partita_run_api(kRunApiVersion)
          ->verify({lowered.model, lowered.program, leaves_of(lowered.model, lowered.atoms)},
                   {model, test.spec.optimizer}, {.run = {.steps = 3, .batch = {.ignored_labels = true}}});
  EXPECT_TRUE(report.equal) << report.worst_parameter << " " << report.worst_error << ", disagreement "
                            << report.disagreement;
  std::vector<Bytes> predicted;
  for (const RankMemory& rank : memory_of(lowered.model, lowered.program)) predicted.push_back(rank.peak);
  EXPECT_EQ(report.peak_bytes, predicted);
}

/// Breaks an instruction; false where it is of another kind.
using Break = bool (*)(Instr& instr);

bool drop_sum(Instr& instr) {
  if (instr.kind != InstrKind::kAllReduce) return false;
  instr.kind = InstrKind::kMove;
  return true;
}
bool shift_slice(Instr& instr) {
  if (instr.kind != InstrKind::kSlice || instr.begin == 0) return false;
  --instr.begin;
  return true;
}
bool change_factor(Instr& instr) {
  for (Arg& arg : instr.args)
    if (instr.kind == InstrKind::kCompute && arg.kind == Arg::kFloat && arg.number == 0.5) {
      arg.number = 0.25;
      return true;
    }
  return false;
}
bool permute_pieces(Instr& instr) {
  if (instr.kind != InstrKind::kConcat || instr.in.size() < 2 || instr.pieces[0] != instr.pieces[1])
    return false;
  std::swap(instr.in[0], instr.in[1]);
  return true;
}

struct Broken {
  const char* what;
  const char* body;
  Break make;
  RecipeSpec spec;
};
const Broken kBroken[] = {
    {"a sum in forward", "stage0.forward", drop_sum, {.tp = 2}},
    {"a sum in backward", "stage0.backward", drop_sum, {.tp = 2, .microbatches = 2}},
    {"a slice of tokens", "stage0.forward", shift_slice, {.tp = 2, .sequence = true}},
    {"a factor", "stage0.forward", change_factor, {.dp = 2}},
    {"a factor of a stage", "stage1.forward", change_factor, {.pp = 2, .microbatches = 2}},
    {"slices of a weight", "stage0.forward", permute_pieces, {.dp = 2, .zdp = {"*"}, .slices = 2}},
};

bool skip_update(Instr& instr) {
  if (instr.kind != InstrKind::kOptimize) return false;
  instr.kind = InstrKind::kMove;
  instr.in.resize(1);
  return true;
}

bool skip_first_update(Program& program) {
  for (Body& body : program.bodies)
    for (Instr& instr : body.instrs)
      if (skip_update(instr)) return true;
  return false;
}

/// What verify says after one step of a program beside one device, both with Adam.
VerifyReport verify_one_step(const Model& model, const Lowered& tried) {
  return partita_run_api(kRunApiVersion)
      ->verify({tried.model, tried.program, leaves_of(tried.model, tried.atoms)}, {model, OptimizerSpec{}},
               {.run = {.steps = 1}});
}

// Gradients are right in the first step, and explain nothing then.
TEST(Verify, AnUpdateThatGradientsDoNotExplainDiffers) {
  Model model = captured("gpt2-tiny", DType::kFloat64);
  const Lowered right = lower::lower(model, recipe(model, {.dp = 2}));
  EXPECT_LT(verify_one_step(model, right).max_param_error, 1e-14);
  Lowered faster = right, idle = right;
  faster.program.optimizer.lr *= 1 + 1e-6;
  ASSERT_TRUE(skip_first_update(idle.program));
  for (const Lowered* wrong : {&faster, &idle}) {
    VerifyReport report = verify_one_step(model, *wrong);
    EXPECT_FALSE(report.equal);
    EXPECT_LT(report.max_grad_error, 1e-12);
    EXPECT_GT(report.max_param_error, 1e-9);
  }
}

/// The op whose result the instruction at this place of a body should leave.
OpId made_there(const Lowered& lowered, const std::vector<Made>& made, BodyId body, int32_t instr) {
  for (const Made& one : made) {
    const Action& action = lowered.program.ranks[one.at.rank].actions[one.at.action];
    if (action.body != body || one.at.instr != instr) continue;
    for (size_t i = 0; i < lowered.model.ops.size(); ++i)
      for (TensorId output : lowered.model.ops[i].outputs)
        if (output == one.tensor) return {static_cast<int32_t>(i)};
  }
  return {};
}

/// Breaks the first such instruction of the body, for all ranks; the op that it makes.
OpId break_first(const Broken& broken, const std::vector<Made>& made, Lowered& tried) {
  OpId op;
  size_t place = 0;
  for (size_t b = 0; b < tried.program.bodies.size(); ++b) {
    Body& body = tried.program.bodies[b];
    if (body.name != broken.body) continue;
    if (op) broken.make(body.instrs[place]);
    for (size_t k = 0; k < body.instrs.size() && !op; ++k)
      if (broken.make(body.instrs[k]))
        op = made_there(tried, made, {static_cast<int32_t>(b)}, static_cast<int32_t>(place = k));
  }
  return op;
}

TEST(Locate, NamesTheFirstOpThatIsWrong) {
  Model model = captured("gpt2-tiny", DType::kFloat64);
  for (const Broken& broken : kBroken) {
    Lowered tried = lower::lower(model, recipe(model, broken.spec));
    Lowered one = lower::lower(tried.model, one_device_plan(tried.model, {}));
    std::vector<Made> made = made_by(tried.model, tried.atoms, tried.program);
    OpId expected = break_first(broken, made, tried);
    ASSERT_TRUE(expected) << broken.what;
    std::optional<WrongOp> found =
        partita_run_api(kRunApiVersion)
            ->locate({{tried.model, tried.program, leaves_of(tried.model, tried.atoms)}, made},
                     {{one.model, one.program, leaves_of(one.model, one.atoms)},
                      made_by(one.model, one.atoms, one.program)},
                     model, {.run = {.steps = 2}});
    ASSERT_TRUE(found) << broken.what;
    EXPECT_EQ(tried.model[found->op].name, tried.model[expected].name) << broken.what;
    EXPECT_GT(found->error, 1e-6) << broken.what;
  }
}

}  // namespace
}  // namespace partita::run
