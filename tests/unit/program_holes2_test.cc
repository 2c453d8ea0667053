// Wrong programs that program_fuzz found accepted, one rule each, and the programs they were made from.
#include <gtest/gtest.h>

#include "certify/certificate.h"
#include "lower/lower.h"
#include "model/build/build.h"
#include "model/rewrite/retype.h"
#include "plan/recipes/recipe.h"

namespace partita::prove {
namespace {

std::string first(const std::vector<std::string>& wrong) { return wrong.empty() ? "" : wrong[0]; }

// Pieces are given out in the order of the mesh, whatever the order in which a group lists its classes.
TEST(Holes2, ClassesOfAGroupOutOfMeshOrder) {
  Model model = build_model(*find_preset("gpt2-tiny"), {.batch = 8});
  Plan plan = recipe(model, {.dp = 3, .zero = 1});
  Prepared prepared = prepare(model, form_of(plan));
  auto [program, fold] = lower_folded(prepared, plan);
  ASSERT_EQ(fold.classes.size(), 3u);
  EXPECT_EQ(first(certify::certify(prepared.model, prepared.atoms, program, fold)), "");
  std::swap(fold.classes.front().coordinates, fold.classes.back().coordinates);
  EXPECT_NE(first(certify::certify(prepared.model, prepared.atoms, expand(program, fold))), "");
  EXPECT_NE(
      first(certify::certify(prepared.model, prepared.atoms, program, fold)).find("in the order of the mesh"),
      std::string::npos);
}

/// Two replicas that end at gradients.
Lowered without_optimizer() {
  Model model = build_model(*find_preset("gpt2-tiny"), {.batch = 4});
  return lower::lower(model, recipe(model, {.dp = 2, .optimizer = {.name = "none"}}));
}

std::string refusal(const Lowered& lowered, Result::Kind from, Result::Kind to) {
  Program program = lowered.program;
  for (Result& result : program.ranks[0].results)
    if (result.kind == from) {
      result.kind = to;
      break;
    }
  return first(certify::certify(lowered.model, lowered.atoms, program));
}

// Without an update a gradient is a value like any other, and nothing asked what it was reported as.
TEST(Holes2, AGradientReportedAsAParameter) {
  Lowered lowered = without_optimizer();
  EXPECT_EQ(refusal(lowered, Result::kGradient, Result::kGradient), "");
  EXPECT_NE(refusal(lowered, Result::kGradient, Result::kParameter).find("as a parameter"),
            std::string::npos);
}

TEST(Holes2, TheLossReportedAsAGradient) {
  Lowered lowered = without_optimizer();
  EXPECT_NE(refusal(lowered, Result::kLoss, Result::kGradient).find("as a gradient"), std::string::npos);
}

// What works in place makes no tensor, and the type it gives its output was believed: memory is counted by
// it.
TEST(Holes2, TheTypeOfWhatWorksInPlace) {
  Model model = build_model(*find_preset("gpt2-tiny"), {.batch = 4});
  Lowered lowered = lower::lower(model, recipe(model, {.dp = 2, .tp = 2}));
  EXPECT_EQ(first(certify::certify(lowered.model, lowered.atoms, lowered.program)), "");
  for (InstrKind kind : {InstrKind::kOptimize, InstrKind::kAllReduce, InstrKind::kMove}) {
    Program program = lowered.program;
    size_t changed = 0;
    TensorType larger = {.shape = {1024}, .strides = {1}, .dtype = DType::kFloat32};
    program.types.push_back(larger);
    for (Body& body : program.bodies)
      for (Instr& instr : body.instrs)
        if (instr.kind == kind) {
          instr.types = {TypeId{static_cast<int32_t>(program.types.size()) - 1}};
          ++changed;
        }
    EXPECT_GT(changed, 0u) << int(kind);
    EXPECT_NE(first(certify::certify(lowered.model, lowered.atoms, program)).find("calls a storage of"),
              std::string::npos);
  }
}

/// The body and place of the first instruction of a kind; of a compute, of an op with this target.
std::pair<Body*, size_t> find(Lowered& lowered, InstrKind kind, const std::string& target = "") {
  for (Body& body : lowered.program.bodies)
    for (size_t i = 0; i < body.instrs.size(); ++i)
      if (body.instrs[i].kind == kind &&
          (target.empty() || lowered.model[body.instrs[i].op].target == target))
        return {&body, i};
  throw std::logic_error("no such instruction");
}

TypeId type_of(Program& program, TensorType type) {
  program.types.push_back(std::move(type));
  return TypeId{static_cast<int32_t>(program.types.size()) - 1};
}

// Master copies and moments that are rounded in every step never move by small updates.
TEST(Holes2, AMasterCopyRoundedToHalf) {
  Model model = retype(build_model(*find_preset("gpt2-tiny"), {.batch = 4}), DType::kBFloat16);
  OptimizerSpec optimizer;
  optimizer.precision.master = DType::kFloat32;
  Lowered lowered = lower::lower(model, recipe(model, {.dp = 2, .optimizer = optimizer}));
  EXPECT_EQ(first(certify::certify(lowered.model, lowered.atoms, lowered.program)), "");
  auto [body, at] = find(lowered, InstrKind::kOptimize);
  Slot master = body->instrs[at].in[4], half{Space::kLocal, body->locals++};
  TypeId whole;
  for (const Load& load : lowered.program.ranks[0].loads)
    if (load.slot == master) whole = load.type;
  TensorType rounded = lowered.program[whole];
  ASSERT_EQ(rounded.dtype, DType::kFloat32);
  rounded.dtype = DType::kBFloat16;
  Instr there{.kind = InstrKind::kCast, .in = {master}, .out = {half}, .drop = {master}};
  there.types = {type_of(lowered.program, rounded)};
  Instr back{.kind = InstrKind::kCast, .in = {half}, .out = {master}, .types = {whole}, .drop = {half}};
  body->instrs.insert(body->instrs.begin() + static_cast<int64_t>(at) + 1, {there, back});
  EXPECT_NE(
      first(certify::certify(lowered.model, lowered.atoms, lowered.program)).find("which keeps its dtype"),
      std::string::npos);
}

}  // namespace
}  // namespace partita::prove
