// Rules of the certificate that need more than two layers: additions, buffers, optimizers with states, norms,
// loss scales, and classes of ranks.
#include <gtest/gtest.h>

#include "../property/program_mutants.h"
#include "certify/algebra/collective.h"
#include "model/seed.h"
#include "program_net.h"

namespace partita::prove {
namespace {

TEST(Rules, AnAdditionIsOneOfTheModel) {
  Model model = net();
  model.ops[2].kwargs = {{"alpha", Arg::of(int64_t{2})}};  // s + 2 k
  Lowered out = lower::lower(model, recipe(model, {.optimizer = sgd()}));
  EXPECT_EQ(certify::certify(out.model, out.atoms, out.program), std::vector<std::string>{});
  add_in_place(out, "fc/add.1", 0);
  expect_refused(out, "adds as fc/add.1 does, which is no sum of two tensors");
}

TEST(Sentences, OfKeywords) {
  Model model = net();
  model.ops[2].kwargs = {{"alpha", Arg::of(int64_t{2})}};
  Lowered out = lower::lower(model, recipe(model, {.optimizer = sgd()}));
  auto [body, at] = find(out, "fc/add.1");
  body->instrs[at].kwargs[0].first = "beta";
  expect_refused(out, "has keyword beta in the place of alpha");
}

TEST(Sentences, OfAdditions) {
  Lowered other = lowered({.optimizer = sgd()});
  auto [body, at] = find(other, "loss/add.grad");
  OpId wrong = body->instrs[at].op;
  add_in_place(other, "fc/add.1", 0);
  for (Body& one : other.program.bodies)
    for (Instr& instr : one.instrs)
      if (instr.kind == InstrKind::kAdd && instr.sum) instr.sum = wrong;
  expect_refused(other, "as loss/add.grad does, which does not read it");
  // x @ w is added to x under another name of its storage.
  Lowered same = lowered({.optimizer = sgd()});
  auto [first, product] = find(same, "fc/mm");
  Instr& call = first->instrs[product];
  Slot alias{Space::kLocal, first->locals++};
  Instr name{.kind = InstrKind::kMove, .in = {call.in[0]}, .out = {alias}};
  call.into = 2;
  call.in.push_back(alias);
  call.out = {alias};
  first->instrs.insert(first->instrs.begin() + static_cast<int64_t>(product), name);
  expect_refused(same, ", to which it adds");
}

TEST(Rules, TheLossIsScaledOnce) {
  Lowered out = lowered({.optimizer = sgd(0, 8)});
  do_twice(out, InstrKind::kScale);
  expect_refused(out, "scales the gradient of the loss twice");
}

TEST(Sentences, OfTheLossScale) {
  Lowered none = lowered({.optimizer = sgd()});
  auto [body, at] = find(none, "loss/full");
  Slot seed = body->instrs[at].out[0];
  Instr scale{.kind = InstrKind::kScale, .in = {seed}, .out = {seed}};
  body->instrs.insert(body->instrs.begin() + static_cast<int64_t>(at) + 1, scale);
  expect_refused(none, "scales, but the program has no loss scale");
  Lowered other = lowered({.optimizer = sgd(0, 8)});
  auto [same, half] = find(other, "loss/mul.grad");
  scale.in = scale.out = same->instrs[half].out;
  same->instrs.insert(same->instrs.begin() + static_cast<int64_t>(half) + 1, scale);
  expect_refused(other, "which is not the gradient of the loss");
}

// clamp(8 g) / 8 is not clamp(g).
TEST(Rules, GradientsAreLinearInTheSeed) {
  Model model = net();
  model.tensors.push_back({.name = "gc", .shape = {6}, .strides = {1}});
  TensorId bent{static_cast<int32_t>(model.tensors.size()) - 1};
  Arg least{.kind = Arg::kFloat, .number = -1}, most{.kind = Arg::kFloat, .number = 1};
  model.ops.push_back(
      {"fc/clamp.grad", "aten.clamp.default", {Arg::of(TensorId{kGs}), least, most}, {}, {bent}, true});
  EXPECT_EQ(unscalable(model), "");  // no gradient depends on it
  model.gradients[1].second = model.gradients[2].second = bent;
  std::string why = "fc/clamp.grad (aten.clamp.default) is not linear in what is computed from g";
  EXPECT_EQ(unscalable(model).substr(0, why.size()), why);
  Lowered out = lowered({.optimizer = sgd(0, 8)});
  out.model = model;
  expect_refused(out, "has a loss scale, but " + why);
}

TEST(Rules, AGradientIsClippedOnce) {
  Lowered out = lowered({.optimizer = sgd(0.5)});
  do_twice(out, InstrKind::kClip);
  expect_refused(out, "which is clipped already");
}

/// Clipping with a change of its first instruction of a kind.
void expect_clipping_refused(InstrKind kind, void (*change)(Lowered& out, Body& body, size_t at),
                             const std::string& why) {
  Lowered out = lowered({.optimizer = sgd(0.5)});
  auto [body, at] = find(out, kind);
  change(out, *body, at);
  expect_refused(out, why);
}

TypeId number(Lowered& out, DType dtype) {
  out.program.types.push_back({.dtype = dtype});
  return TypeId{static_cast<int32_t>(out.program.types.size()) - 1};
}

TEST(Sentences, OfTheNorm) {
  expect_clipping_refused(
      InstrKind::kClip,
      [](Lowered&, Body& body, size_t at) { body.instrs[at].in[1] = body.instrs[at].in[0]; },
      "for the norm of the gradients");
  expect_clipping_refused(
      InstrKind::kClip,
      [](Lowered&, Body& body, size_t at) { mutants::make_idle(body, static_cast<int>(at)); },
      "needs it clipped");
  expect_clipping_refused(
      InstrKind::kSquares,
      [](Lowered& out, Body& body, size_t at) {
        body.instrs[at].in[1] = out.program.ranks[0].loads.back().slot;
        body.instrs[at].drop.clear();
      },
      ", needs a complete gradient");
  expect_clipping_refused(
      InstrKind::kSquares,
      [](Lowered& out, Body& body, size_t at) {
        Slot narrow{Space::kLocal, body.locals++};
        Instr zeros{.kind = InstrKind::kZeros, .out = {narrow}, .types = {number(out, DType::kFloat32)}};
        body.instrs[at].in[0] = body.instrs[at].out[0] = narrow;
        body.instrs.insert(body.instrs.begin() + static_cast<int64_t>(at), zeros);
      },
      "keeps a sum of squares as float32[]");
  expect_clipping_refused(
      InstrKind::kSquares,
      [](Lowered& out, Body& body, size_t at) {
        Slot wide{Space::kLocal, body.locals++}, loss;
        for (const Result& result : out.program.ranks[0].results)
          if (result.kind == Result::kLoss) loss = result.slot;
        Instr cast{.kind = InstrKind::kCast, .in = {loss}, .out = {wide}};
        cast.types = {number(out, DType::kFloat64)};
        body.instrs[at].in[0] = body.instrs[at].out[0] = wide;
        body.instrs.insert(body.instrs.begin() + static_cast<int64_t>(at), cast);
      },
      "adds squares to loss[] as float64");
}

TEST(Sentences, OfStates) {
  Lowered out = lowered({.optimizer = {.name = "adamw"}});
  RankProgram& rank = out.program.ranks[0];
  Load state = *std::find_if(rank.loads.begin(), rank.loads.end(),
                             [](const Load& load) { return load.tensor == TensorId{kK}; });
  state.slot = {Space::kRank, rank.rank_slots++};
  state.state = 0;
  rank.loads.push_back(state);
  expect_refused(out, "loads an optimizer state of fc.k, which is not trained");
}

TEST(Rules, AnUpdateTakesItsOwnStates) {
  Lowered out = lowered({.optimizer = {.name = "adamw"}});
  auto [body, at] = find(out, InstrKind::kOptimize);
  std::swap(body->instrs[at].in[2], body->instrs[at].in[3]);
  expect_refused(out, "needs its optimizer state 0");
}

TEST(Rules, RanksOfAClassCutEqualPieces) {
  Model model = net();
  Plan plan = recipe(model, {.dp = 2, .zero = 3, .optimizer = sgd()});
  Prepared prepared = prepare(model, form_of(plan));
  FoldedProgram folded = lower_folded(prepared, plan);
  auto said = [&] { return certify::certify(prepared.model, prepared.atoms, folded.program, folded.fold); };
  EXPECT_EQ(said(), std::vector<std::string>{});
  for (Body& body : folded.program.bodies)
    for (Instr& instr : body.instrs)
      if (instr.kind == InstrKind::kAllGather) --instr.pieces.back();
  std::vector<std::string> wrong = said();
  ASSERT_FALSE(wrong.empty());
  EXPECT_NE(wrong[0].find("cuts unequal pieces for ranks of one class"), std::string::npos) << wrong[0];
}

/// Classes that stand for one coordinate each, in the place of one that stands for two.
FoldedProgram with_halves(FoldedProgram folded, int32_t whole) {
  Fold& fold = folded.fold;
  int32_t other = static_cast<int32_t>(fold.classes.size());
  size_t axis = 0;
  while (fold.classes[whole].coordinates[axis].length() != 2) ++axis;
  folded.program.ranks.push_back(folded.program.ranks[whole]);
  fold.classes.push_back(fold.classes[whole]);
  fold.group_axes.push_back(fold.group_axes[whole]);
  fold.loads.push_back(fold.loads[whole]);
  fold.results.push_back(fold.results[whole]);
  fold.classes[whole].coordinates[axis] = {0, 1};
  fold.classes[other].coordinates[axis] = {1, 2};
  for (int32_t half : {whole, other})
    for (std::vector<int32_t>& group : folded.program.ranks[half].groups) group = {whole, other};
  return folded;
}

TEST(Sentences, OfClasses) {
  Model model = net();
  auto said = [&](const RecipeSpec& spec, void (*change)(FoldedProgram&)) {
    Plan plan = recipe(model, spec);
    Prepared prepared = prepare(model, form_of(plan));
    FoldedProgram folded = lower_folded(prepared, plan);
    change(folded);
    std::vector<std::string> wrong =
        certify::certify(prepared.model, prepared.atoms, folded.program, folded.fold);
    return wrong.empty() ? "nothing" : wrong[0];
  };
  EXPECT_EQ(said({.dp = 2, .optimizer = sgd()}, [](FoldedProgram& f) { f = with_halves(f, 0); }), "nothing");
  EXPECT_NE(said({.dp = 2, .optimizer = sgd()},
                 [](FoldedProgram& f) {
                   f = with_halves(f, 0);
                   for (auto& axes : f.fold.group_axes[1]) axes.clear();
                 })
                .find("rank 1 is in another group than rank 0"),
            std::string::npos);
  EXPECT_NE(said({.dp = 2, .pp = 2, .microbatches = 2, .optimizer = sgd()},
                 [](FoldedProgram& f) { f = with_halves(f, 1); })
                .find("its peer 1 stands for ranks with other coordinates"),
            std::string::npos);
}

/// Rows [0, 3) of the gradient of the weight on the first of two ranks of a class, as far as it moves.
Meaning rows_of_gradient(const Atoms& atoms, int64_t step) {
  Meaning meaning{.tensor = TensorId{kGw}, .box = as_spans(whole_box(atoms, TensorId{kGw}))};
  meaning.box[0][0] = {0, 3, {step}};
  return meaning;
}

TEST(Sentences, OfSumsAlongAClass) {
  Model model = net();
  Atoms atoms = find_atoms(model);
  Rules rules(model, atoms);
  Interval two{0, 2};
  auto why = [&](auto does) -> std::string {
    try {
      does();
    } catch (const Refused& refused) {
      return refused.what();
    }
    return "nothing: it was not refused";
  };
  Meaning rows = rows_of_gradient(atoms, 3), gap = rows_of_gradient(atoms, 2);
  Meaning still = rows_of_gradient(atoms, 0);
  EXPECT_EQ(why([&] { sum_along(rules, rows, 0, two); }),
            "gw[0:3 + 3x, 0:6] are different parts, they cannot be added");
  EXPECT_EQ(why([&] { joined_along(rules, gap, {}, 0, two); }),
            "joins gw[0:3 + 2x, 0:6]: the pieces do not follow each other in the order of the group");
  Meaning both = rows;
  both.box[1][0] = {0, 3, {3}};
  EXPECT_EQ(why([&] { joined_along(rules, both, {}, 0, two); }),
            "joins gw[0:3 + 3x, 0:3 + 3x], which differ in more than the leaf that is joined");
  Meaning squares{.squares = {{still.tensor, still.box}}};
  EXPECT_EQ(why([&] { sum_along(rules, squares, 0, two); }),
            "the sum of squares of 1 parts of gradients: a part of a gradient would count 2 times");
  EXPECT_EQ(why([&] {
              sum_of(rules, {&squares, &still});
            }),
            "the sum of squares of 1 parts of gradients and gw[0:3, 0:6] cannot be put together");
  Instr gather{.kind = InstrKind::kAllGather, .pieces = {3, 3, 3, 3}};
  std::vector<Interval> coordinates{two, two};
  std::vector<int> axes{0, 1};
  EXPECT_EQ(why([&] {
              collective_of(rules, {{gather, rows, coordinates, axes}});
            }),
            "cuts along 2 axes at once");
}

}  // namespace
}  // namespace partita::prove
