// Wrong programs that the certificate accepted once, one rule of docs/certificate.md each, and the programs
// they were made from, which it accepts still.
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/json.h"
#include "certify/algebra/coverage.h"
#include "model/row.h"
#include "model/seed.h"
#include "program/span.h"
#include "program_net.h"

namespace partita::prove {
namespace {

TEST(Holes, AViewThatNoRowKnowsIsOne) {
  Op custom{.name = "a/alias", .target = "mine.alias.default"};
  EXPECT_FALSE(is_view(custom));
  custom.view = true;
  EXPECT_TRUE(is_view(custom));
  for (const char* target : {"aten.as_strided.default", "aten.view_as_real.default",
                             "aten.view_as_complex.default", "aten.diagonal.default"})
    EXPECT_TRUE(is_view({.name = "a/op", .target = target})) << target;
  EXPECT_FALSE(is_view({.name = "a/op", .target = "aten._conj.default", .view = true}));
  // A gradient that is a view of another: clipping it in place would change both.
  Model model = net();
  model.tensors.push_back({.name = "alias", .shape = {6}, .strides = {1}});
  TensorId alias{static_cast<int32_t>(model.tensors.size()) - 1};
  model.ops.push_back(
      {"fc/alias.grad", "mine.alias.default", {Arg::of(TensorId{kGs})}, {}, {alias}, true, "", false, true});
  model.gradients[2].second = alias;
  Lowered out = lower::lower(model, recipe(model, {.optimizer = sgd(0.5)}));
  EXPECT_EQ(certify::certify(out.model, out.atoms, out.program), std::vector<std::string>{});
  auto [body, at] = find(out, "fc/alias.grad");
  EXPECT_TRUE(body->instrs[at].view);
  body->instrs[at].view = false;
  expect_refused(out, "makes a view, but is not marked as one");
}

TEST(Holes, TheSeedIsWhatGradientsComeFrom) {
  Model model = net();
  model.tensors.push_back({.name = "count", .role = Role::kBuffer});
  model.tensors.push_back({.name = "more"});
  model.tensors.push_back({.name = "counted"});
  TensorId counted{static_cast<int32_t>(model.tensors.size()) - 1}, more{counted.value - 1},
      count{counted.value - 2};
  Arg one{.kind = Arg::kFloat, .number = 1};
  // Before backward: the first one that is made is not the gradient of the loss.
  auto at = model.ops.begin() + 4;
  at = model.ops.insert(at, {"fc/full", "aten.full.default", {Arg::list({}), one}, {}, {more}, true});
  model.ops.insert(at + 1,
                   {"fc/count", "aten.add.Tensor", {Arg::of(count), Arg::of(more)}, {}, {counted}, true});
  model.buffers = {{count, counted}};
  EXPECT_EQ(loss_gradient(model), TensorId{kG});
  EXPECT_EQ(unscalable(model), "");
  Lowered out = lower::lower(model, recipe(model, {.optimizer = sgd(0, 8)}));
  EXPECT_EQ(certify::certify(out.model, out.atoms, out.program), std::vector<std::string>{});
  out.model.seed = more;
  expect_refused(out, "has a loss scale, but the gradient of fc.weight is not computed from more");
  model.seed = TensorId{kG};
  EXPECT_EQ(parse_model(to_json(model), "model").seed, model.seed);
  model.seed = TensorId{kGz};
  EXPECT_EQ(check(model), std::vector<std::string>{
                              "gz is not the gradient of the loss, which is made of ones after forward"});
}

TEST(Holes, ABufferOfScaledGradientsIsRefused) {
  Model model = net();
  model.tensors.push_back({.name = "fc.seen", .shape = {6}, .strides = {1}, .role = Role::kBuffer});
  model.buffers = {{TensorId{static_cast<int32_t>(model.tensors.size()) - 1}, TensorId{kGs}}};
  EXPECT_EQ(unscalable(model),
            "the new value of buffer fc.seen is computed from g, the gradient of the loss");
  EXPECT_THROW(lower::lower(model, recipe(model, {.optimizer = sgd(0, 8)})), InputError);
}

TEST(Holes, ALossScaleNeedsAnOptimizer) {
  OptimizerSpec none{.name = "none"};
  Lowered out = lowered({.optimizer = none});
  none.precision.loss_scale = 8;
  Model model = net();
  try {
    lower::lower(model, recipe(model, {.optimizer = none}));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what())
                  .find("precision.loss_scale: without an optimizer nobody takes the "
                        "scale out of the gradients"),
              std::string::npos)
        << error.what();
  }
  out.program.optimizer.precision.loss_scale = 8;
  expect_refused(out, "has a loss scale, which no optimizer takes out of the gradients");
}

TEST(Holes, EveryTrainedParameterIsReported) {
  for (const RecipeSpec& spec :
       {RecipeSpec{.optimizer = sgd()}, RecipeSpec{.dp = 2, .zero = 3, .optimizer = sgd()}}) {
    Lowered out = lowered(spec);
    for (RankProgram& rank : out.program.ranks)
      std::erase_if(rank.results, [](const Result& result) {
        return result.kind == Result::kParameter && result.tensor == TensorId{kP2};
      });
    expect_refused(out, "the report of the updated parameter fc.p2[0:6] is on no rank after the step");
  }
}

TEST(Holes, WhatLastsKeepsItsMeaning) {
  Lowered buffer = lowered({.optimizer = sgd()});
  add_in_place(buffer, "fc/add.1", 1);
  expect_refused(buffer, "fc.k[0:6] lasts to the next step, but");
  Lowered frozen = lowered({.optimizer = sgd()});
  add_in_place(frozen, "fc/add.2", 1);
  expect_refused(frozen, "fc.f[0:6] lasts to the next step, but");
  Lowered untrained = lowered({.optimizer = {.name = "none"}});
  add_in_place(untrained, "fc/add", 0);
  std::erase_if(untrained.program.ranks[0].results,
                [](const Result& result) { return result.kind == Result::kParameter; });
  expect_refused(untrained, "fc.p1[0:6] lasts to the next step, but");
}

TEST(Holes, SumsDoNotReadWhatTheyChange) {
  Lowered out = lowered({.optimizer = sgd()});
  add_in_place(out, "loss/add", 0);
  expect_refused(out, "which shares its storage with");
}

TEST(Holes, SumsReadTheScaledSeed) {
  Lowered out = lowered({.optimizer = sgd(0, 8)});
  auto [body, at] = find(out, "loss/full");
  Instr again = body->instrs[at];
  again.out = {{Space::kLocal, body->locals++}};
  auto [same, sum] = find(out, "loss/add.grad");
  Instr& instr = same->instrs[sum];
  instr = {.kind = InstrKind::kAdd,
           .in = {instr.in[0], again.out[0]},
           .out = instr.out,
           .sum = instr.op,
           .drop = instr.drop};
  instr.drop.push_back(again.out[0]);
  same->instrs.insert(same->instrs.begin() + static_cast<int64_t>(sum), again);
  expect_refused(out, "(add): reads g[], needs it times the loss scale");
}

TEST(Holes, NormsCountEveryPart) {
  Box whole = {{{0, 6}}}, left = {{{0, 3}}}, right = {{{3, 6}}}, middle = {{{2, 4}}};
  EXPECT_TRUE(covers_times(whole, {left, right, whole}, 2));
  EXPECT_TRUE(covers_times(whole, {left, left, right, right}, 2));
  EXPECT_FALSE(covers_times(whole, {left, left, left, right}, 2));
  EXPECT_FALSE(covers_times(whole, {left, right, middle, {{{0, 4}}}}, 2));
  EXPECT_TRUE(covers_times({}, {{}, {}}, 2));  // one number
  // A gradient that is the same all along a dimension: two parts of it lie anywhere.
  Box half = {{{kAnywhere, kAnywhere + 3}}}, wide = {{{0, 2}}, {{0, 6}}};
  EXPECT_TRUE(covers_times(whole, {half, half}, 1));
  EXPECT_TRUE(covers_times(whole, {left, half, half, half}, 2));
  EXPECT_FALSE(covers_times(whole, {half, half, half}, 2));
  Box top = {{{0, 1}}, half[0]}, bottom = {{{1, 2}}, half[0]};
  EXPECT_TRUE(covers_times(wide, {top, bottom, bottom, top}, 1));
  EXPECT_FALSE(covers_times(wide, {top, top, top, bottom}, 1));
  // Two parameters share a gradient; rank 0 counts its part three times, rank 1 once.
  Lowered out = lowered({.dp = 2, .zero = 3, .optimizer = sgd(0.5)});
  auto counts_of = [&](size_t rank) {
    std::vector<std::pair<Body*, size_t>> found;
    for (const Action& action : out.program.ranks[rank].actions) {
      Body& body = out.program.bodies[action.body.value];
      for (size_t i = 0; i < body.instrs.size(); ++i)
        if (body.instrs[i].kind == InstrKind::kSquares) found.emplace_back(&body, i);
    }
    return found;
  };
  // Ranks share bodies: rank 1 gets its own.
  Body second = out.program.bodies[out.program.ranks[1].actions.back().body.value];
  out.program.bodies.push_back(second);
  out.program.ranks[1].actions.back().body = BodyId{static_cast<int32_t>(out.program.bodies.size()) - 1};
  auto first = counts_of(0), other = counts_of(1);
  ASSERT_EQ(first.size(), 3);  // of the weight, p1 and p2
  ASSERT_EQ(other.size(), 3);
  Body& less = *other.back().first;
  less.instrs.erase(less.instrs.begin() + static_cast<int64_t>(other.back().second));
  Body& more = *first.back().first;
  Instr twice = more.instrs[first.back().second];
  more.instrs.insert(more.instrs.begin() + static_cast<int64_t>(first.back().second), twice);
  expect_refused(out, "uses the norm before it holds every part of gs 2 times: 12 of its 12 elements");
}

TEST(Holes, APartThatIsLoadedTwiceIsOneStorage) {
  Lowered out = lowered({.optimizer = sgd()});
  RankProgram& rank = out.program.ranks[0];
  Load copy;
  for (const Load& load : rank.loads)
    if (load.tensor == TensorId{kW}) copy = load;
  Slot old = copy.slot;
  copy.slot = {Space::kRank, rank.rank_slots++};
  rank.loads.push_back(copy);
  for (Body& body : out.program.bodies)
    for (size_t i = 0; i < body.instrs.size(); ++i)
      if (body.instrs[i].kind == InstrKind::kOptimize && body.instrs[i].in[0] == old) {
        Instr again = body.instrs[i];
        again.in[0] = again.out[0] = copy.slot;
        again.drop.clear();
        body.instrs.insert(body.instrs.begin() + static_cast<int64_t>(i++), again);
      }
  expect_refused(out, "whose storage was changed in place at");
}

TEST(Holes, StridesAreThoseOfTheModel) {
  Lowered out = lowered({.dp = 2, .zero = 3, .microbatches = 2, .optimizer = sgd()});
  auto turned = [&](TypeId type) {
    TensorType other = out.program[type];
    std::swap(other.strides[0], other.strides[1]);
    out.program.types.push_back(other);
    return TypeId{static_cast<int32_t>(out.program.types.size()) - 1};
  };
  auto try_type = [&](TypeId& type) {
    if (!type || out.program[type].shape.size() != 2 || numel(out.program[type].shape) < 2) return 0;
    const Shape strides = out.program[type].strides;
    if (strides[0] == strides[1]) return 0;
    TypeId old = std::exchange(type, turned(type));
    EXPECT_FALSE(certify::certify(out.model, out.atoms, out.program).empty());
    type = old;
    return 1;
  };
  int tried = 0;
  for (Body& body : out.program.bodies)
    for (Instr& instr : body.instrs)
      for (TypeId& type : instr.types)
        if (instr.kind != InstrKind::kAdd && instr.kind != InstrKind::kOptimize && instr.into < 0)
          tried += try_type(type);
  for (RankProgram& rank : out.program.ranks)
    for (Load& load : rank.loads) tried += try_type(load.type);
  EXPECT_GT(tried, 10);
  EXPECT_EQ(certify::certify(out.model, out.atoms, out.program), std::vector<std::string>{});
}

TEST(Holes, TheProgramUpdatesByThePlansNumbers) {
  Lowered out = lowered({.optimizer = sgd(0.5, 8)});
  OptimizerSpec wanted = out.program.optimizer;
  auto changes = {+[](OptimizerSpec& spec) { spec.lr *= 2; }, +[](OptimizerSpec& spec) { spec.clip = 1; },
                  +[](OptimizerSpec& spec) { spec.precision.loss_scale = 4; },
                  +[](OptimizerSpec& spec) { spec.weight_decay = 0; }};
  for (auto change : changes) {
    out.program.optimizer = wanted;
    change(out.program.optimizer);
    std::vector<std::string> said = certify::certify(out.model, out.atoms, out.program, wanted);
    ASSERT_EQ(said.size(), 1);
    EXPECT_NE(said[0].find("the program updates by"), std::string::npos);
  }
}

// The certificate looked for a length that no shape gives, for ever.
TEST(Holes, ZerosOfFewerDimensionsAreRefused) {
  Lowered out = lowered({.optimizer = sgd()});
  auto [body, at] = find(out, "loss/sum");
  Instr zeros{.kind = InstrKind::kZeros, .out = {{Space::kLocal, body->locals++}}};
  out.program.types.push_back({.dtype = DType::kFloat32});
  zeros.types = {TypeId{static_cast<int32_t>(out.program.types.size()) - 1}};
  body->instrs[at].in[0] = zeros.out[0];
  body->instrs[at].drop.push_back(zeros.out[0]);
  body->instrs.insert(body->instrs.begin() + static_cast<int64_t>(at), zeros);
  expect_refused(out, "zeros of another rank stand for o");
}

}  // namespace
}  // namespace partita::prove
