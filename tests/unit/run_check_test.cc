#include <gtest/gtest.h>

#include "base/error.h"
#include "run/check.h"
#include "run/loads.h"

namespace partita::run {
namespace {

// Two ranks; rank 0 makes frame slot 0, sends it and drops it in a later body; rank 1 receives it and reads
// it.
Program sound() {
  Slot value{Space::kFrame, 0};
  Program program;
  program.types = {{{2}, {1}, DType::kFloat32}};
  program.bodies.resize(3);
  program.bodies[0] = {"make", {{.kind = InstrKind::kZeros, .out = {value}, .types = {TypeId{0}}}}, 0};
  program.bodies[1] = {
      "drop", {{.kind = InstrKind::kMove, .in = {value}, .out = {{Space::kLocal, 0}}, .drop = {value}}}, 1};
  program.bodies[2] = {"read", {{.kind = InstrKind::kMove, .in = {value}, .out = {{Space::kLocal, 0}}}}, 1};
  program.ranks.resize(2);
  for (RankProgram& rank : program.ranks) rank.frame_slots = 1;
  auto run = [](int body) { return Action{.kind = ActionKind::kRun, .body = BodyId{body}}; };
  auto other = [&](ActionKind kind, int peer) {
    return Action{.kind = kind, .slot = value, .type = TypeId{0}, .peer = peer};
  };
  program.ranks[0].actions = {run(0), other(ActionKind::kSend, 1), other(ActionKind::kWaitSend, 1), run(1)};
  program.ranks[1].actions = {other(ActionKind::kPostReceive, 0), other(ActionKind::kWaitReceive, 0), run(2),
                              other(ActionKind::kFree, -1)};
  return program;
}

std::string complaint(const Program& program) {
  try {
    check_runnable(program, Model{});
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(CheckRunnable, AcceptsASoundProgram) { EXPECT_EQ(complaint(sound()), ""); }

TEST(CheckRunnable, ReadingWhatIsBeingSentIsFineDroppingIsNot) {
  Program program = sound();
  std::swap(program.ranks[0].actions[2], program.ranks[0].actions[3]);
  EXPECT_EQ(complaint(program),
            "program: rank 0, action 2: changes or frees frame slot 0 before its send with rank 1 is over");
  program.ranks[0].actions[2].body = BodyId{2};
  EXPECT_EQ(complaint(program), "");
}

TEST(CheckRunnable, WhatIsBeingReceivedMayNotBeRead) {
  Program program = sound();
  std::swap(program.ranks[1].actions[1], program.ranks[1].actions[2]);
  EXPECT_EQ(complaint(program),
            "program: rank 1, action 1: reads frame slot 0 before its receive with rank 0 is over");
}

TEST(CheckRunnable, EveryTransferIsWaitedFor) {
  Program program = sound();
  program.ranks[1].actions.erase(program.ranks[1].actions.begin() + 1, program.ranks[1].actions.end());
  EXPECT_EQ(complaint(program),
            "program: rank 1: the receive of frame slot 0 with rank 0 (tag 0) is never waited for");
  program = sound();
  program.ranks[0].actions[2].tag = 4;
  EXPECT_EQ(complaint(program),
            "program: rank 0, action 2: waits for a transfer of frame slot 0 that has not begun");
}

TEST(CheckRunnable, NumbersOutOfRangeAreRefused) {
  Program program = sound();
  program.ranks[0].frame_slots = 0;
  EXPECT_EQ(complaint(program), "program: rank 0, action 0: frame slot 0 of 0");
  program = sound();
  program.bodies[1].locals = 0;
  EXPECT_EQ(complaint(program), "program: body drop, instruction 0: local slot 0 of 0 locals");
  program = sound();
  program.ranks[1].actions[0].type = TypeId{7};
  EXPECT_EQ(complaint(program), "program: rank 1, action 0: no type 7");
  program = sound();
  program.ranks[1].groups = {{0, 2}};
  EXPECT_EQ(complaint(program), "program: rank 1: group [0, 2] must name different ranks and this one");
  program = sound();
  program.ranks[0].actions[0].microbatch = 1;
  EXPECT_EQ(complaint(program), "program: rank 0, action 0: micro-batch 1 of 1");
}

TEST(PlanLoads, SaysWhereTheNextStepFindsItsValues) {
  Slot parameter{Space::kRank, 0}, updated{Space::kRank, 1}, constant{Space::kRank, 2},
      batch{Space::kRank, 3}, frozen{Space::kRank, 4}, moved{Space::kRank, 5};
  Model model;
  for (Role role : {Role::kParameter, Role::kConstant, Role::kBatchInput, Role::kParameter, Role::kParameter})
    model.tensors.push_back({.name = "t", .shape = {4}, .role = role});
  Program program;
  program.bodies = {
      {"step",
       {{.kind = InstrKind::kMove, .in = {parameter}, .out = {updated}, .drop = {parameter, constant}}},
       0}};
  program.ranks.resize(2);
  RankProgram& rank = program.ranks[0];
  rank.actions = {{.kind = ActionKind::kRun, .body = BodyId{0}}};
  Box whole = {{{0, 4}}}, half = {{{0, 2}}};
  rank.loads = {{.slot = parameter, .tensor = TensorId{0}, .box = whole},
                {.slot = constant, .tensor = TensorId{1}, .box = whole},
                {.slot = batch, .tensor = TensorId{2}, .box = whole},
                {.slot = frozen, .tensor = TensorId{3}, .box = whole},
                {.slot = moved, .tensor = TensorId{4}, .box = half}};
  rank.results = {{Result::kParameter, updated, TensorId{0}, whole}};
  program.ranks[1].results = {{Result::kParameter, updated, TensorId{4}, whole}};
  std::vector<NextLoad> plan = plan_loads(program, model, 0);
  std::vector<Next> next;
  for (const NextLoad& load : plan) next.push_back(load.next);
  EXPECT_EQ(next, (std::vector{Next::kCarry, Next::kCopy, Next::kBatch, Next::kStay, Next::kReassemble}));
  EXPECT_EQ(plan[0].from, updated);
  rank.loads = {{.slot = parameter, .tensor = TensorId{0}, .box = whole, .state = 0}};
  EXPECT_THROW(plan_loads(program, model, 0), InputError);
}

}  // namespace
}  // namespace partita::run
