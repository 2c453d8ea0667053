// Programs written out by hand for a small net: right ones are accepted, and each fault is named.
#include <gtest/gtest.h>

#include "../property/program_mutants.h"
#include "certify/algebra/meaning.h"
#include "certify/certificate.h"
#include "program_small.h"

namespace partita::certify {
namespace {

std::vector<std::string> certify(const SmallProgram& small) {
  return certify::certify(small.model, small.atoms, small.program);
}

void expect_accepted(const SmallProgram& small) {
  for (const std::string& sentence : certify(small)) ADD_FAILURE() << sentence;
}

/// The mutant is refused, and its first sentence has these parts.
void expect_refused(const SmallProgram& small, const Mutant& mutant, const std::vector<std::string>& parts) {
  ASSERT_TRUE(mutant);
  std::vector<std::string> wrong = certify::certify(small.model, small.atoms, *mutant);
  ASSERT_FALSE(wrong.empty());
  for (const std::string& part : parts) EXPECT_NE(wrong[0].find(part), std::string::npos) << wrong[0];
}

TEST(Certificate, AcceptsOneRank) { expect_accepted(grid_program(1, 1, 1)); }
TEST(Certificate, AcceptsDataParallel) { expect_accepted(grid_program(2, 1, 1)); }
TEST(Certificate, AcceptsUnevenDataParallel) { expect_accepted(grid_program(3, 1, 1, {2, 1, 1})); }
TEST(Certificate, AcceptsAnEmptyShare) { expect_accepted(grid_program(2, 1, 1, {4, 0})); }
TEST(Certificate, AcceptsTensorParallel) { expect_accepted(grid_program(1, 2, 1)); }
TEST(Certificate, AcceptsMicrobatches) { expect_accepted(grid_program(1, 1, 4)); }
TEST(Certificate, AcceptsAProductOfAll) { expect_accepted(grid_program(2, 3, 2)); }
TEST(Certificate, AcceptsAPipeline) { expect_accepted(pipeline_program(2)); }

TEST(Certificate, SeesADroppedAllReduce) {
  SmallProgram small = grid_program(2, 1, 1);
  expect_refused(
      small, mutants::dropped_all_reduce(small.program),
      {", action 2 (run after), instruction 3 (optimize)", "updates fc1.weight[0:3, 0:6]",
       "gw1[0:3, 0:6], a partial sum of 2:4 of 4 of x:0.0 summed in fc1/addmm.grad.0", "must be complete"});
}

TEST(Certificate, SeesAWrongGroup) {
  SmallProgram small = grid_program(2, 2, 1);
  expect_refused(small, mutants::wrong_group(small.program),
                 {"(all_reduce)", "gw1[0:3, 0:3] and gw1[0:3, 3:6] are different parts"});
}

/// Data parallel with fc1.weight at rest in pieces of its rows: gathered before use, its gradient scattered
/// after.
SmallProgram sharded_program() {
  SmallProgram small = grid_program(2, 1, 1);
  Cut cut{.dim = 0, .leaf = 0, .outer = 1, .inner = 1};
  Slot stored{Space::kRank, 7}, piece_sum{Space::kRank, 8};
  for (size_t r = 0; r < 2; ++r) {
    RankProgram& rank = small.program.ranks[r];
    rank.rank_slots = 9;
    Interval rows = piece({0, kIn}, 2, static_cast<int64_t>(r));
    TypeId whole = small.type(kW1, {}), part = small.type({rows.length(), kHidden});
    for (Load& load : rank.loads)
      if (load.tensor == TensorId{kW1}) load.slot = stored, load.box[0][0] = rows, load.type = part;
    Body &before = small.program.bodies[rank.actions[0].body.value],
         &after = small.program.bodies[rank.actions[2].body.value];
    before.instrs.push_back({.kind = InstrKind::kAllGather,
                             .in = {stored},
                             .out = {small.slot(kW1)},
                             .types = {whole},
                             .group = 0,
                             .cut = cut,
                             .pieces = {2, 1}});
    after.instrs[0] = {.kind = InstrKind::kReduceScatter,
                       .in = {small.sum(kGw1)},
                       .out = {piece_sum},
                       .types = {part},
                       .group = 0,
                       .cut = cut,
                       .pieces = {2, 1},
                       .drop = {small.sum(kGw1), small.slot(kW1)}};
    for (Instr& instr : after.instrs)
      if (instr.kind == InstrKind::kOptimize && instr.in[0] == small.slot(kW1))
        instr.in = {stored, piece_sum}, instr.out = {stored};
    for (Result& result : rank.results) {
      if (result.tensor == TensorId{kGw1}) result.slot = piece_sum, result.box[0][0] = rows;
      if (result.tensor == TensorId{kW1}) result.slot = stored, result.box[0][0] = rows;
    }
  }
  return small;
}

TEST(Certificate, AcceptsShardedParameters) { expect_accepted(sharded_program()); }

TEST(Certificate, SeesZerosJoinedIntoAnotherShape) {
  Instr gather{.kind = InstrKind::kAllGather, .cut = {.dim = 0, .leaf = 0}, .pieces = {2, 1}};
  TensorType piece{{2, 3}, {3, 1}, DType::kFloat32}, whole{{3, 3}, {3, 1}, DType::kFloat32};
  EXPECT_NO_THROW(check_join(gather, piece, whole));
  EXPECT_THROW(check_join(gather, piece, piece), Refused);
  whole.dtype = DType::kFloat64;
  EXPECT_THROW(check_join(gather, piece, whole), Refused);
}

TEST(Certificate, SeesAPermutedGather) {
  SmallProgram small = sharded_program();
  for (Body& body : small.program.bodies)
    for (Instr& instr : body.instrs)
      if (instr.kind == InstrKind::kAllGather) instr.pieces = {1, 2};
  expect_refused(
      small, mutants::permuted_gather(small.program),
      {"(all_gather)", "joins fc1.weight[2:3, 0:6] and then fc1.weight[0:2, 0:6]", "order of the group"});
}

/// The same, but the rows at rest become columns first and those are gathered.
SmallProgram exchanged_program() {
  SmallProgram small = sharded_program();
  Slot columns{Space::kRank, 9};
  TypeId part = small.type({kIn, kHidden / 2});
  for (RankProgram& rank : small.program.ranks) {
    rank.rank_slots = 10;
    std::vector<Instr>& instrs = small.program.bodies[rank.actions[0].body.value].instrs;
    Instr& gather = instrs.back();
    Instr exchange = gather;
    exchange.kind = InstrKind::kAllToAll;
    exchange.out = {columns};
    exchange.types = {part};
    exchange.scatter = {.dim = 1};
    exchange.shares = {kHidden / 2, kHidden / 2};
    gather.in = gather.drop = {columns};
    gather.cut = exchange.scatter;
    gather.pieces = exchange.shares;
    instrs.insert(instrs.end() - 1, exchange);
  }
  return small;
}

TEST(Certificate, AcceptsExchangedPieces) { expect_accepted(exchanged_program()); }

TEST(Certificate, SeesAWrongExchange) {
  SmallProgram small = exchanged_program();
  auto broken = [&](auto change) {
    Program program = small.program;
    for (Body& body : program.bodies)
      for (Instr& instr : body.instrs)
        if (instr.kind == InstrKind::kAllToAll) change(instr);
    return program;
  };
  expect_refused(small, broken([](Instr& instr) {
                   instr.pieces = {1, 2};
                 }),
                 {"(all_to_all)", "a piece of 2; 1 was declared"});
  expect_refused(small, broken([](Instr& instr) {
                   instr.shares = {3, 2};
                 }),
                 {"(all_to_all)", "scatters 5 of 6 elements"});
  expect_refused(small, broken([](Instr& instr) { instr.scatter.inner = 2; }),
                 {"(all_to_all)", "cuts dimension 1"});
  expect_refused(small, broken([](Instr& instr) { instr.scatter = instr.cut, instr.shares = instr.pieces; }),
                 {"(all_to_all)", "makes fc1.weight[0:2, 0:6]"});
  Program one_way = small.program;
  BodyId first = one_way.ranks[0].actions[0].body;
  for (Instr& instr : one_way.bodies[first.value].instrs)
    if (instr.kind == InstrKind::kAllToAll) instr.shares = {2, 4};
  expect_refused(small, one_way, {"(all_to_all)", "cuts it in another way"});
}

TEST(Certificate, SeesAMicrobatchLeftOut) {
  SmallProgram small = grid_program(1, 1, 4);
  expect_refused(small, mutants::not_accumulated(small.program),
                 {"reports loss loss", "0:3 of 4 of x:0.0 summed in loss/sum"});
}

TEST(Certificate, SeesAMicrobatchAddedTwice) {
  SmallProgram small = grid_program(1, 1, 4);
  expect_refused(small, mutants::accumulated_twice(small.program),
                 {"rank 0, action 4 (run step, micro-batch 3), instruction 6 (add)", "count twice"});
  SmallProgram grid = grid_program(2, 1, 2);
  expect_refused(grid, mutants::accumulated_twice(grid.program),
                 {"both hold 1:2 of 4 of x:0.0 summed in loss/sum", "count twice"});
}

/// The instruction of a rank that adds a product to this sum.
Instr& grown(Program& program, Slot sum) {
  for (Body& body : program.bodies)
    for (Instr& instr : body.instrs)
      if (instr.into >= 0 && instr.in[instr.into] == sum) return instr;
  throw std::logic_error("nothing is added to it");
}

TEST(Certificate, AcceptsProductsThatAddToSums) {
  expect_accepted(with_growing_sums(grid_program(1, 1, 4)));
  expect_accepted(with_growing_sums(grid_program(2, 3, 2)));
}

TEST(Certificate, SeesAProductThatDoesNotAdd) {
  SmallProgram small = with_growing_sums(grid_program(1, 1, 2));
  Instr& instr = grown(small.program, small.sum(kGw2));
  instr.in.pop_back();
  instr.into = -1;
  expect_refused(small, small.program, {"fc2/mm.grad.0", "writes over r5, which is still alive"});
}

TEST(Certificate, SeesAProductAddedToTheWrongSum) {
  SmallProgram small = with_growing_sums(grid_program(1, 1, 1));
  Instr& instr = grown(small.program, small.sum(kGw2));
  instr.in.back() = instr.out[0] = small.slot(kW2);
  expect_refused(small, small.program, {"fc2.weight", "gw2", "are not pieces of one tensor"});
  instr.sum = OpId{2};
  expect_refused(small, small.program, {"loss/mul does, which is no sum of two tensors"});
}

TEST(Certificate, SeesAProductThatReadsWhatItAddsTo) {
  SmallProgram small = with_growing_sums(grid_program(1, 1, 1));
  grown(small.program, small.sum(kGw2)).into = 0;
  expect_refused(small, small.program, {"reads input 0, to which it adds"});
}

TEST(Certificate, SeesAWrongScale) {
  SmallProgram small = grid_program(1, 1, 1);
  expect_refused(small, mutants::wrong_scale(small.program),
                 {"(loss/scale, aten.mul.Scalar)", "argument 1 is 1.0, but this piece of the op needs 0.5"});
}

TEST(Certificate, SeesSwappedReceives) {
  SmallProgram small = pipeline_program(2);
  expect_refused(small, mutants::swapped_receives(small.program),
                 {"rank 1", "(loss/mul, aten.mul.Tensor)", "disagree about x:0.0", "2:4", "0:2"});
}

TEST(Certificate, SeesASumBeforeTheLastMicrobatch) {
  SmallProgram small = grid_program(2, 1, 2);
  expect_refused(small, mutants::reduced_too_early(small.program),
                 {"(optimize)", "updates fc1.weight", "a partial sum of"});
}

TEST(Certificate, SeesAValueFreedTooEarly) {
  SmallProgram small = grid_program(1, 1, 1);
  expect_refused(
      small, mutants::freed_too_early(small.program),
      {"(fc2/t, aten.t.default)", "reads f2, which was freed too early, at action 1, instruction 1"});
}

TEST(Certificate, TellsADeadlock) {
  SmallProgram small = pipeline_program(1);
  expect_refused(small, mutants::late_send(small.program),
                 {"deadlock: rank 0 waits at action", "to receive f3 of micro-batch 0 from rank 1 (tag 17)",
                  "rank 1 waits at action", "to receive f2 of micro-batch 0 from rank 0 (tag 5)"});
}

TEST(Certificate, SeesACollectiveThatOneRankLeavesOut) {
  SmallProgram small = grid_program(2, 1, 1);
  EXPECT_FALSE(
      certify::certify(small.model, small.atoms, *mutants::missing_on_one_rank(small.program)).empty());
}

// --- A bias beside a cut sum: exactly one rank adds it ---

/// The input dimension of fc1 over two ranks: h is a sum over ranks, the bias is added by `adders`.
SmallProgram cut_input_program(std::vector<bool> adders) {
  SmallProgram small = grid_program(1, 1, 1);
  RankProgram only = small.program.ranks[0];
  Body step = small.program[only.actions[1].body];
  small.program.ranks.clear();
  for (int r = 0; r < 2; ++r) {
    RankProgram rank = only;
    rank.groups = {{0, 1}};
    rank.rank_slots = 8;
    Interval in = piece({0, kIn}, 2, r);
    for (Load& load : rank.loads) {
      if (load.tensor == TensorId{kX}) load.box[1][0] = in, load.type = small.type({kBatch, in.length()});
      if (load.tensor == TensorId{kW1}) load.box[0][0] = in, load.type = small.type({in.length(), kHidden});
    }
    BodyId body = small.body("step");
    Slot zeros{Space::kLocal, 20};
    Instr first = step.instrs[0];
    if (!adders[r]) {
      small.emit(body, {.kind = InstrKind::kZeros, .out = {zeros}, .types = {small.type(kB1, {})}});
      first.in[0] = zeros;
      first.drop.push_back(zeros);
    }
    small.emit(body, first);
    small.emit(body, {.kind = InstrKind::kAllReduce,
                      .in = {small.slot(kH)},
                      .out = {small.slot(kH)},
                      .types = {small.type(kH, {})},
                      .group = 0});
    for (size_t i = 1; i < step.instrs.size(); ++i) small.emit(body, step.instrs[i]);
    for (Instr& instr : small.program.bodies[body.value].instrs) {
      if (instr.kind != InstrKind::kCompute) continue;
      if (instr.out[0] == small.slot(kXt)) instr.types = {small.type({in.length(), kBatch})};
      if (instr.out[0] == small.slot(kGw1)) instr.types = {small.type({in.length(), kHidden})};
    }
    BodyId before = small.body("before");
    small.zeros(before, {kGb1, kGw2, kLoss}, {});
    small.emit(
        before,
        {.kind = InstrKind::kZeros, .out = {small.sum(kGw1)}, .types = {small.type({in.length(), kHidden})}});
    rank.actions[0].body = before;
    rank.actions[1].body = body;
    for (Result& result : rank.results)
      if (result.tensor == TensorId{kW1} || result.tensor == TensorId{kGw1}) result.box[0][0] = in;
    small.program.ranks.push_back(rank);
  }
  return small;
}

TEST(Certificate, AcceptsABiasThatOneRankAdds) { expect_accepted(cut_input_program({true, false})); }
TEST(Certificate, SeesABiasAddedTwice) {
  SmallProgram small = cut_input_program({true, true});
  expect_refused(
      small, small.program,
      {"(all_reduce)", "both hold all of what comes through operand 0 of fc1/addmm", "count twice"});
}
TEST(Certificate, SeesABiasAddedByNobody) {
  SmallProgram small = cut_input_program({false, false});
  // The net is linear in h, so that the missing bias travels on to where a complete value is needed.
  expect_refused(small, small.program,
                 {"(optimize)", "nothing of what comes through operand 0 of fc1/addmm"});
}

// --- Lifetimes and storage ---

Instr& find_instr(Program& program, InstrKind kind, int32_t op = -1) {
  for (Body& body : program.bodies)
    for (Instr& instr : body.instrs)
      if (instr.kind == kind && (op < 0 || instr.op.value == op)) return instr;
  throw std::logic_error("no such instruction");
}

TEST(Certificate, SeesALeak) {
  SmallProgram small = grid_program(1, 1, 1);
  find_instr(small.program, InstrKind::kCompute, 3).drop.clear();
  expect_refused(small, small.program, {"rank 0, action 1 (run step)", "never drops l7"});
}

TEST(Certificate, SeesAnOverwrittenValue) {
  SmallProgram small = grid_program(1, 1, 1);
  find_instr(small.program, InstrKind::kZeros).out = {small.slot(kW1)};
  expect_refused(small, small.program, {"instruction 0 (zeros)", "writes over r0, which is still alive"});
}

TEST(Certificate, SeesAChangeUnderAView) {
  SmallProgram small = grid_program(2, 1, 1);
  // h is a view's base: summing it in place after t(h) was taken changes what the view shows.
  Body& body = small.program.bodies[small.program.ranks[0].actions[1].body.value];
  for (size_t i = 0; i < body.instrs.size(); ++i)
    if (body.instrs[i].op.value == 11 && body.instrs[i].kind == InstrKind::kCompute) {
      body.instrs.insert(
          body.instrs.begin() + static_cast<int64_t>(i) + 1,
          {.kind = InstrKind::kOptimize, .in = {small.slot(kW2), small.sum(kGw2)}, .out = {small.slot(kW2)}});
      break;
    }
  std::vector<std::string> wrong = certify(small);
  ASSERT_FALSE(wrong.empty());
  EXPECT_NE(wrong[0].find("updates fc2.weight"), std::string::npos) << wrong[0];
}

TEST(Certificate, SeesAParameterReadAfterItsUpdate) {
  SmallProgram small = grid_program(1, 1, 1);
  std::vector<Action>& actions = small.program.ranks[0].actions;
  std::swap(actions[1], actions[2]);
  expect_refused(small, small.program, {"updates fc1.weight[0:3, 0:6] with zeros, needs its gradient gw1"});
}

TEST(Certificate, SeesAParameterNeverUpdated) {
  SmallProgram small = grid_program(1, 1, 1);
  std::vector<Instr>& after = small.program.bodies[1].instrs;
  after.pop_back();
  std::erase_if(small.program.ranks[0].results, [](const Result& r) { return r.kind == Result::kParameter; });
  expect_refused(small, small.program, {"rank 0: fc2.weight[0:6, 0:2] is never updated"});
  small.report(small.program.ranks[0], Result::kParameter, kW2, {});
  expect_refused(small, small.program,
                 {"reports parameter fc2.weight[0:6, 0:2] from r2", "before its update"});
}

TEST(Certificate, SeesAMissingResult) {
  SmallProgram small = grid_program(1, 2, 1);
  std::erase_if(small.program.ranks[1].results, [](const Result& r) { return r.tensor == TensorId{kGb1}; });
  expect_refused(small, small.program, {"rank 1: never frees r4", "gb1[3:6]"});
}

TEST(Certificate, SeesAValueLoadedInsteadOfComputed) {
  SmallProgram small = grid_program(1, 1, 1);
  small.program.ranks[0].rank_slots = 8;
  small.program.ranks[0].loads.push_back({.slot = {Space::kRank, 7},
                                          .tensor = TensorId{kH},
                                          .box = small.box(kH, {}),
                                          .type = small.type(kH, {})});
  expect_refused(small, small.program, {"rank 0: loads h, which the step must compute"});
}

TEST(Certificate, SeesAViewThatIsNotMarked) {
  SmallProgram small = grid_program(1, 1, 1);
  find_instr(small.program, InstrKind::kCompute, 9).view = false;
  expect_refused(small, small.program, {"(fc2/t, aten.t.default)", "makes a view, but is not marked as one"});
}

TEST(Certificate, SeesABufferFreedWhileItIsSent) {
  SmallProgram small = pipeline_program(2);
  std::vector<Action>& actions = small.program.ranks[0].actions;
  auto wait = std::find_if(actions.begin(), actions.end(),
                           [](const Action& a) { return a.kind == ActionKind::kWaitSend; });
  std::iter_swap(wait, wait + 1);
  expect_refused(small, small.program, {"(free, micro-batch 0)", "frees f2 while it is being sent"});
}

TEST(Certificate, SeesAReadBeforeTheWait) {
  SmallProgram small = pipeline_program(1);
  std::vector<Action>& actions = small.program.ranks[1].actions;
  auto wait = std::find_if(actions.begin(), actions.end(),
                           [](const Action& a) { return a.kind == ActionKind::kWaitReceive; });
  std::iter_swap(wait, wait + 1);
  expect_refused(small, small.program,
                 {"(fc2/mm, aten.mm.default)", "reads f2 before waiting for what it receives"});
}

/// Data parallel whose sum of fc2.weight's gradient starts in the step and is waited for after it.
SmallProgram started_program() {
  SmallProgram small = grid_program(2, 1, 1);
  for (Body& body : small.program.bodies) {
    auto is_sum = [&](const Instr& instr) {
      return instr.kind == InstrKind::kAllReduce && instr.in[0] == small.sum(kGw2);
    };
    if (body.name == "after")
      *std::find_if(body.instrs.begin(), body.instrs.end(), is_sum) = {.kind = InstrKind::kWait,
                                                                       .in = {small.sum(kGw2)}};
    auto adds = std::find_if(body.instrs.begin(), body.instrs.end(), [&](const Instr& instr) {
      return instr.kind == InstrKind::kAdd && instr.in[0] == small.sum(kGw2);
    });
    if (body.name == "step")
      body.instrs.insert(adds + 1, {.kind = InstrKind::kAllReduce,
                                    .in = {small.sum(kGw2)},
                                    .out = {small.sum(kGw2)},
                                    .types = {small.type(kGw2, {})},
                                    .group = 0,
                                    .later = true});
  }
  return small;
}

/// Puts an instruction into every body "after", before its wait.
Program before_the_wait(const SmallProgram& small, const Instr& instr) {
  Program program = small.program;
  for (Body& body : program.bodies)
    if (body.name == "after") body.instrs.insert(body.instrs.begin(), instr);
  return program;
}

TEST(Certificate, AcceptsASumThatWasStartedEarlier) { expect_accepted(started_program()); }

TEST(Certificate, SeesWhatTouchesACollectiveUnderWay) {
  SmallProgram small = started_program();
  Slot sum = small.sum(kGw2), local{Space::kLocal, 0};
  expect_refused(small, before_the_wait(small, {.kind = InstrKind::kMove, .in = {sum}, .out = {local}}),
                 {"(run after), instruction 0 (move): reads r5 before waiting for what it receives"});
  expect_refused(small, before_the_wait(small, {.kind = InstrKind::kAdd, .in = {sum, sum}, .out = {sum}}),
                 {"instruction 0 (add): reads r5 before waiting"});
  expect_refused(
      small,
      before_the_wait(small, {.kind = InstrKind::kZeros, .out = {sum}, .types = {small.type(kGw2, {})}}),
      {"instruction 0 (zeros): writes over r5, which is still alive"});
}

TEST(Certificate, SeesAWaitWithoutAStartAndAStartWithoutAWait) {
  SmallProgram small = started_program();
  Instr again{.kind = InstrKind::kWait, .in = {small.sum(kGw1)}};
  expect_refused(small, before_the_wait(small, again),
                 {"instruction 0 (wait): waits for r3, which no collective is making"});
  // Nobody updates fc2.weight then, so nobody else sees that its gradient is still under way.
  Program left = small.program;
  for (Body& body : left.bodies)
    std::erase_if(body.instrs, [&](const Instr& instr) {
      return (instr.kind == InstrKind::kWait || instr.kind == InstrKind::kOptimize) &&
             (instr.in[0] == small.sum(kGw2) || instr.in[0] == small.slot(kW2));
    });
  std::vector<std::string> wrong = certify::certify(small.model, small.atoms, left);
  auto waits = [](const std::string& text) { return text == "rank 0: never waits for the transfer of r5"; };
  EXPECT_EQ(std::count_if(wrong.begin(), wrong.end(), waits), 1);
}

// What a gather reads may be read by others until it is waited for, but neither changed nor dropped.
TEST(Certificate, SeesChangesOfWhatIsGathered) {
  SmallProgram small = sharded_program();
  Slot stored{Space::kRank, 7};
  auto later = [&](std::vector<Instr> between) {
    Program program = small.program;
    size_t rank = 0;  // each has a body of its own
    for (Body& body : program.bodies) {
      auto gather = std::find_if(body.instrs.begin(), body.instrs.end(),
                                 [](const Instr& instr) { return instr.kind == InstrKind::kAllGather; });
      if (gather == body.instrs.end()) continue;
      gather->later = true;
      Instr wait{.kind = InstrKind::kWait, .in = gather->out, .drop = std::exchange(gather->drop, {})};
      for (const Load& load : program.ranks[rank++].loads)
        if (load.slot == stored && between[0].kind == InstrKind::kZeros) between[0].types = {load.type};
      body.instrs.insert(body.instrs.insert(gather + 1, wait), between.begin(), between.end());
    }
    return program;
  };
  Slot name{Space::kLocal, 1};
  Instr reads{.kind = InstrKind::kMove, .in = {stored}, .out = {name}, .drop = {name}};
  EXPECT_EQ(certify::certify(small.model, small.atoms, later({reads})), std::vector<std::string>{});
  Instr nothing{.kind = InstrKind::kZeros, .out = {name}};
  Instr adds{.kind = InstrKind::kAdd, .in = {stored, name}, .out = {stored}, .drop = {name}};
  expect_refused(small, later({nothing, adds}), {"changes r7 while it is being sent; wait for that first"});
  Instr drops = reads;
  drops.drop = {stored, name};
  expect_refused(small, later({drops}), {"frees r7 while it is being sent; wait for that first"});
}

TEST(Certificate, SeesAFrozenLoopThatIsCut) {
  SmallProgram small = grid_program(1, 1, 1);
  for (Loop& loop : small.atoms.ops[1].loops) loop.frozen = true, loop.why = "for this test";
  expect_accepted(small);
  SmallProgram cut = grid_program(2, 1, 1);
  for (Loop& loop : cut.atoms.ops[1].loops) loop.frozen = true, loop.why = "for this test";
  expect_refused(cut, cut.program,
                 {"(fc2/mm, aten.mm.default)", "needs all of x:0.0 (for this test), but has 0:2 of 4"});
}

}  // namespace
}  // namespace partita::certify
