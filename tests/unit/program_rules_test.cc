// The rules of the certificate one by one: small programs that break one rule and no other, so that they
// would be accepted without it (bench/rules_off.py), and their list in docs/certificate.md.
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>

#include "base/file.h"
#include "certify/algebra/meaning.h"
#include "certify/rules.h"
#include "program_broken.h"

namespace partita::certify {
namespace {

const std::string kSource = PARTITA_SOURCE_DIR;

// --- Form ---

TEST(Rules, ArgumentsAreEqualByTheirBits) {
  SmallProgram small = grid_program(1, 1, 1);
  auto scale = [&](double number) {
    for (Body& body : small.program.bodies)
      for (Instr& instr : body.instrs)
        if (instr.kind == InstrKind::kCompute && small.model[instr.op].name == "loss/scale")
          instr.args[1].number = number;
  };
  for (Op& op : small.model.ops)
    if (op.name == "loss/scale") op.args[1].number = 0.0;
  scale(0.0);
  expect_accepted(small);
  scale(-0.0);
  expect_refused(small, "argument 1 is -0.0, but this piece of the op needs 0.0");
}

TEST(Rules, OnlySomeOpsAddToWhatIsThere) {
  SmallProgram small = grid_program(1, 1, 1);
  auto sum = computing(step(small), small.model, "fc1/addmm.grad.1");
  sum->into = 1;
  sum->in.push_back(small.sum(kGb1));
  sum->out = {small.sum(kGb1)};
  step(small).erase(sum + 1);
  expect_refused(small, "aten.sum.dim_IntList cannot add to what is there");
}

// --- Lifetimes ---

TEST(Rules, ASumUnderWayIsNotRead) {
  SmallProgram small = grid_program(2, 1, 1);
  Instr reads{.kind = InstrKind::kMove, .in = {small.sum(kGw1)}, .out = {local(21)}, .drop = {local(21)}};
  Instr waits{.kind = InstrKind::kWait, .in = {small.sum(kGw1)}};
  for (Body& body : small.program.bodies) {
    if (body.name != "after") continue;
    body.instrs[0].later = true;
    body.instrs.insert(body.instrs.begin() + 1, waits);
  }
  expect_accepted(small);
  after(small).insert(after(small).begin() + 1, reads);
  expect_refused(small, "reads r3 before waiting for what it receives");
}

TEST(Rules, AViewOfWhatChangedIsNotRead) {
  SmallProgram small = grid_program(1, 1, 1);
  auto update = updating(after(small), small.slot(kW2));
  Instr early = *update;
  after(small).erase(update);
  auto view = computing(step(small), small.model, "fc2/t.1");
  step(small).insert(view + 2, early);
  expect_accepted(small);
  std::iter_swap(computing(step(small), small.model, "fc2/mm.grad.1"),
                 updating(step(small), small.slot(kW2)));
  expect_refused(small, "whose storage was changed in place at action 1");
}

TEST(Rules, NothingIsWrittenTwice) {
  SmallProgram small = grid_program(1, 1, 1);
  before(small).push_back(before(small)[0]);
  expect_refused(small, "(zeros): writes over r3, which is still alive");
}

TEST(Rules, AnExpandedViewIsNotChanged) {
  SmallProgram small = grid_program(1, 1, 1);
  auto expand = computing(step(small), small.model, "loss/expand");
  Slot spread = expand->out[0];
  Instr zeros{.kind = InstrKind::kZeros, .out = {local(21)}, .types = expand->types};
  Instr add{.kind = InstrKind::kAdd, .in = {spread, local(21)}, .out = {spread}, .drop = {local(21)}};
  step(small).insert(step(small).insert(expand + 1, zeros) + 1, add);
  expect_refused(small, "in place, whose elements share memory");
}

TEST(Rules, NobodyWaitsForARankThatHasEnded) {
  SmallProgram small = grid_program(2, 1, 1);
  BodyId alone = small.body("alone");
  TypeId type = small.type({});
  small.emit(alone, {.kind = InstrKind::kZeros, .out = {local(0)}, .types = {type}});
  small.emit(alone, {.kind = InstrKind::kAllReduce,
                     .in = {local(0)},
                     .out = {local(0)},
                     .types = {type},
                     .group = 0,
                     .drop = {local(0)}});
  for (RankProgram& rank : small.program.ranks) rank.actions.push_back(SmallProgram::run(alone));
  expect_accepted(small);
  small.program.ranks[1].actions.pop_back();
  expect_refused(small, "deadlock: rank 0 waits");
}

// --- Types and operands ---

TEST(Rules, APieceHasItsOwnShape) {
  SmallProgram small = grid_program(1, 1, 1);
  step(small).insert(step(small).begin(), {.kind = InstrKind::kSlice,
                                           .in = {small.slot(kW1)},
                                           .out = {local(21)},
                                           .types = {small.type({1, kHidden})},
                                           .length = 1,
                                           .drop = {local(21)}});
  expect_accepted(small);
  step(small)[0].types = {small.type({2, kHidden})};
  expect_refused(small, "makes fc1.weight[0:1, 0:6] of dtype float32 as float32[2,6]");
}

TEST(Rules, WhatArrivesHasTheTypeThatWasSent) {
  SmallProgram small = pipeline_program(1);
  for (Action& action : small.program.ranks[1].actions)
    if (action.kind == ActionKind::kPostReceive) action.type = small.type({kHidden, kBatch});
  expect_refused(small, "expects float32[6,4] from rank 0, which sends float32[4,6]");
}

TEST(Rules, AnOpReadsWhatTheModelSays) {
  SmallProgram small = grid_program(1, 1, 1);
  auto product = computing(step(small), small.model, "loss/mul");
  product->in[1] = product->in[0];
  expect_refused(small, "needs t as operand 1, but f4 holds y");
}

TEST(Rules, OperandsAreOfTheSameRows) {
  SmallProgram small = grid_program(2, 1, 1);
  RankProgram& rank = small.program.ranks[1];
  auto labels = std::find_if(rank.loads.begin(), rank.loads.end(),
                             [](const Load& load) { return load.tensor == TensorId{kT}; });
  Load other = *labels;
  other.slot.index = rank.frame_slots++;
  rank.loads.push_back(other);
  Body& body = small.program.bodies[rank.actions[1].body.value];
  computing(body.instrs, small.model, "loss/mul")->in[1] = other.slot;
  expect_accepted(small);
  rank.loads.back().box[0][0] = {0, 2};
  expect_refused(small, "its operands disagree about x:0.0");
}

TEST(Rules, WhatIsNotLinearTakesNoPartialSums) {
  SmallProgram small = grid_program(1, 2, 1);
  small.model.ops[2].target = "aten.relu.default";
  small.model.ops[2].args.pop_back();
  small.atoms = find_atoms(small.model);
  for (Body& body : small.program.bodies) {
    if (body.name != "step") continue;
    auto relu = computing(body.instrs, small.model, "loss/mul");
    relu->args.pop_back();
    relu->in.pop_back();
  }
  expect_accepted(small);
  for (Body& body : small.program.bodies)
    std::erase_if(body.instrs, [](const Instr& instr) { return instr.kind == InstrKind::kAllReduce; });
  expect_refused(small, "is not linear in operand 0");
}

TEST(Rules, CastsLoseNothing) {
  SmallProgram small = grid_program(1, 1, 1);
  TypeId own = small.type({kBatch, kOut});
  auto through = [&](DType dtype) {
    SmallProgram out = small;
    TensorType other = out.program[own];
    other.dtype = dtype;
    out.program.types.push_back(other);
    auto product = computing(step(out), out.model, "loss/mul");
    Slot y = std::exchange(product->in[0], local(22));
    product->drop = {local(22)};
    TypeId type{static_cast<int32_t>(out.program.types.size()) - 1};
    Instr there{.kind = InstrKind::kCast, .in = {y}, .out = {local(21)}, .types = {type}, .drop = {y}};
    Instr back{.kind = InstrKind::kCast, .in = {local(21)}, .out = {local(22)}, .types = {own}};
    back.drop = {local(21)};
    step(out).insert(step(out).insert(product, there) + 1, back);
    return out;
  };
  expect_accepted(through(DType::kFloat64));
  expect_refused(through(DType::kBFloat16), "to bfloat16, which cannot hold it");
}

// --- Sums and joins ---

TEST(Rules, DifferentPartsAreNotAdded) {
  SmallProgram small;
  Rules rules(small.model, small.atoms);
  auto part = [&](const Interval& hidden, const Interval& batch) {
    Meaning x{.tensor = TensorId{kXt}, .box = as_spans(small.box(kXt, {.batch = batch}))};
    Meaning g{.tensor = TensorId{kGh}, .box = as_spans(small.box(kGh, {.batch = batch, .hidden = hidden}))};
    TensorType xt{{kIn, batch.length()}, {batch.length(), 1}}, gh{{batch.length(), 3}, {3, 1}},
        out{{kIn, 3}, {3, 1}};
    return apply(rules, OpId{14}, {{&x, &xt, {}}, {&g, &gh, {}}}, {&out})[0];
  };
  Meaning a = part({0, 3}, {0, 2}), b = part({0, 3}, {2, 4}), other = part({3, 6}, {2, 4});
  EXPECT_TRUE(sum_of(rules, {&a, &b}).addend.complete());
  EXPECT_THROW(sum_of(rules, {&a, &other}), Refused);
}

TEST(Rules, PiecesAreOfOneTensor) {
  SmallProgram small = joined_program();
  expect_accepted(small);
  Instr &scale = step(small)[3], &top = step(small)[4], &bottom = step(small)[5];
  Slot l = scale.in[0];
  scale.drop.clear();
  top.drop = bottom.in;
  bottom.in = {l};
  bottom.drop = {l};
  expect_refused(small, "are not pieces of one tensor");
}

TEST(Rules, PiecesAreJoinedInOrder) {
  SmallProgram small = joined_program();
  std::swap(step(small)[6].in[0], step(small)[6].in[1]);
  expect_refused(small, "the pieces do not follow each other in the order of the group");
}

TEST(Rules, PiecesDifferInOneLeaf) {
  SmallProgram small = joined_program();
  Instr narrow = step(small)[5];
  narrow.in = narrow.drop = {local(22)};
  narrow.out = {local(24)};
  narrow.types = {small.type({2, 1})};
  narrow.cut.dim = 1;
  narrow.begin = 0;
  narrow.length = 1;
  Instr& join = step(small)[6];
  join.in[1] = join.drop[1] = local(24);
  step(small).insert(step(small).begin() + 6, narrow);
  expect_refused(small, "which differ in more than the leaf that is joined");
}

TEST(Rules, PiecesHaveTheirLengths) {
  SmallProgram small = joined_program();
  step(small)[6].pieces = {1, 3};
  expect_refused(small, "a piece of 2; 1 was declared");
}

TEST(Rules, CutsSayTheSizesAround) {
  SmallProgram small = joined_program();
  step(small)[6].cut.inner = 2;
  expect_refused(small, "cuts dimension 0 of s[0:2, 0:2] as (1, .., 2), needs (1, .., 1)");
}

TEST(Rules, MembersCutAlike) {
  SmallProgram small = grid_program(2, 1, 1);
  for (RankProgram& rank : small.program.ranks) {
    Body& body = small.program.bodies[rank.actions[0].body.value];
    Instr zeros{.kind = InstrKind::kZeros, .out = {local(21)}, .types = {small.type({kBatch, kOut})}};
    Instr scatter{.kind = InstrKind::kReduceScatter,
                  .in = {local(21)},
                  .out = {local(22)},
                  .types = {small.type({2, kOut})},
                  .group = 0,
                  .pieces = {2, 2},
                  .drop = {local(21), local(22)}};
    body.instrs.push_back(zeros);
    body.instrs.push_back(scatter);
  }
  expect_accepted(small);
  before(small).back().pieces = {1, 3};
  expect_refused(small, "rank 1 cuts it in another way than rank 0");
}

// --- Updates ---

TEST(Rules, AParameterIsUpdatedOnce) {
  SmallProgram small = grid_program(1, 1, 1);
  after(small).push_back(*updating(after(small), small.slot(kW1)));
  expect_refused(small, "updates fc1.weight[0:3, 0:6] after its update a second time");
}

TEST(Rules, AnUpdateTakesItsOwnGradient) {
  SmallProgram small = grid_program(1, 1, 1);
  auto update = updating(after(small), small.slot(kW1));
  update->in[1] = local(21);
  update->drop = {local(21)};
  Instr zeros{.kind = InstrKind::kZeros, .out = {local(21)}, .types = {small.type(kW1, {})}};
  after(small).insert(update, zeros);
  expect_refused(small, "updates fc1.weight[0:3, 0:6] with zeros, needs its gradient gw1");
}

TEST(Rules, WhatIsLoadedOfAParameterIsUpdated) {
  SmallProgram small = grid_program(1, 1, 1);
  RankProgram& rank = small.program.ranks[0];
  Load part = rank.loads[0];
  part.slot = {Space::kRank, rank.rank_slots++};
  part.box[0][0] = {0, 1};
  part.type = small.type({1, kHidden});
  rank.loads.push_back(part);
  expect_refused(small, "fc1.weight[0:1, 0:6] is never updated");
}

// --- The list ---

/// "3. **held**: A slot is ... `Certificate.SeesAValueFreedTooEarly`"
struct Listed {
  std::string number, name, demands, test;
};

std::vector<Listed> listed() {
  std::string page = read_file(kSource + "/docs/certificate.md");
  std::regex line("(?:^|\n)([0-9]+)[.] [*][*]([a-z-]+)[*][*]: ([^\n]*) `([A-Za-z.]+)`(?=\n)");
  std::vector<Listed> out;
  for (std::sregex_iterator at(page.begin(), page.end(), line), end; at != end; ++at)
    out.push_back({(*at)[1], (*at)[2], (*at)[3], (*at)[4]});
  return out;
}

TEST(RuleList, IsTheTableOfThePage) {
  std::vector<Listed> page = listed();
  ASSERT_EQ(page.size(), kRuleCount);
  for (size_t i = 0; i < kRuleCount; ++i) {
    EXPECT_EQ(kRules[i].rule, static_cast<Rule>(i)) << kRules[i].name;
    EXPECT_EQ(page[i].number, std::to_string(i + 1));
    EXPECT_EQ(page[i].name, kRules[i].name);
    EXPECT_EQ(page[i].demands, kRules[i].demands);
  }
}

TEST(RuleList, NamesTestsThatExist) {
  std::string tests;
  for (const auto& entry : std::filesystem::directory_iterator(kSource + "/tests/unit"))
    if (entry.path().filename().string().starts_with("program_")) tests += read_file(entry.path().string());
  for (const Listed& rule : listed()) {
    size_t dot = rule.test.find('.');
    std::string test = "TEST(" + rule.test.substr(0, dot) + ", " + rule.test.substr(dot + 1) + ")";
    EXPECT_NE(tests.find(test), std::string::npos) << rule.name << ": " << test;
  }
}

}  // namespace
}  // namespace partita::certify
