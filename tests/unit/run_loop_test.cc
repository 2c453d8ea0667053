// The loop on thread ranks without torch: bodies that do nothing, bytes that really move.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "run/threads/hollow.h"

namespace partita::run {
namespace {

constexpr int kMicrobatches = 8;

// Two stages: rank 0 forwards what it has, rank 1 receives it one micro-batch ahead.
Program two_stages() {
  Slot slot{Space::kFrame, 0};
  Program program{.types = {{{2}, {1}, DType::kFloat32}}, .bodies = {{.name = "stage"}}};
  program.microbatches = kMicrobatches;
  program.ranks.resize(2);
  auto add = [&](int rank, ActionKind kind, int m) {
    program.ranks[rank].frame_slots = 1;
    program.ranks[rank].actions.push_back({.kind = kind,
                                           .body = BodyId{0},
                                           .microbatch = m,
                                           .slot = slot,
                                           .type = TypeId{0},
                                           .peer = kind == ActionKind::kRun ? -1 : 1 - rank,
                                           .tag = m});
  };
  add(1, ActionKind::kPostReceive, 0);
  for (int m = 0; m < kMicrobatches; ++m) {
    for (ActionKind kind : {ActionKind::kRun, ActionKind::kSend, ActionKind::kWaitSend}) add(0, kind, m);
    if (m + 1 < kMicrobatches) add(1, ActionKind::kPostReceive, m + 1);
    add(1, ActionKind::kWaitReceive, m);
    add(1, ActionKind::kRun, m);
  }
  for (int m = 0; m < kMicrobatches; ++m)
    program.ranks[0].loads.push_back({.slot = slot, .microbatch = m, .type = TypeId{0}});
  return program;
}

TEST(Loop, FramesMoveBetweenStages) {
  Program program = two_stages();
  HollowRun run(program, {});
  for (int step = 0; step < 2; ++step) ASSERT_EQ(run.step(), "");
  EXPECT_EQ(run.rank(1).ran(), 2 * kMicrobatches);
  for (int m = 0; m < kMicrobatches; ++m) {
    HostTensor sent = run.rank(0).value({Space::kFrame, 0}, m);
    EXPECT_NE(sent, HostTensor({2}, DType::kFloat32)) << "a sender has something to send";
    EXPECT_EQ(run.rank(1).value({Space::kFrame, 0}, m), sent);
  }
}

// F = 3, a message 2: rank 1 starts when the first has come; rank 0 waits for each of its sends.
TEST(Loop, TheVirtualClockPassesAsPlanned) {
  Program program = two_stages();
  Timing timing =
      even_timing(program, [](const Body&) { return 3.0; }, {to_picoseconds(1.5), to_picoseconds(0.5)});
  HollowRun run(program, {.clock = ClockKind::kVirtual, .timing = timing, .traced = true});
  ASSERT_EQ(run.step(), "");
  Trace trace = run.trace();
  EXPECT_EQ(check(trace), std::vector<std::string>{});
  EXPECT_EQ(trace.step_seconds, 5 * kMicrobatches + 3);
  EXPECT_EQ(trace.clock, "virtual");
}

// A sum of 5 that starts at 1 and is waited for after computing 2: the other rank starts it at 4.
TEST(Loop, AStartedCollectiveRunsBesideComputing) {
  Slot slot{Space::kRank, 0};
  Program program{.bodies = {{.name = "starts"}, {.name = "waits"}}};
  program.bodies[0].instrs = {
      {.kind = InstrKind::kAllReduce, .in = {slot}, .out = {slot}, .group = 0, .later = true}};
  program.bodies[1].instrs = {{.kind = InstrKind::kWait, .in = {slot}}};
  program.ranks.resize(2);
  Timing timing;
  for (int r = 0; r < 2; ++r) {
    program.ranks[r] = {.actions = {{.body = BodyId{0}}, {.body = BodyId{1}}}, .groups = {{0, 1}}};
    program.ranks[r].rank_slots = 1;
    timing.ranks.push_back({.first = {0, 3}});
    for (double seconds : {1.0 + 3 * r, 5.0, 1.0, 1.0, 0.0, 2.0})
      timing.ranks[r].pieces.push_back(to_picoseconds(seconds));
  }
  HollowRun run(program, {.clock = ClockKind::kVirtual, .timing = timing, .traced = true});
  for (int step = 0; step < 2; ++step) {
    ASSERT_EQ(run.step(), "");
    Trace trace = run.trace();
    EXPECT_EQ(check(trace), std::vector<std::string>{});
    EXPECT_EQ(trace.step_seconds, 4 + 5 + 2);
    EXPECT_EQ(trace.exposed_comm_seconds, (5.0 + 3.0) / 2);  // from 4 on rank 0, from 6 on rank 1
  }
}

TEST(Loop, TheEmulatedClockTakesWhatIsPlanned) {
  Program program = two_stages();
  Timing timing = even_timing(program, [](const Body&) { return 2e-3; }, {0, to_picoseconds(1e-3)});
  HollowRun run(program, {.clock = ClockKind::kEmulated, .timing = timing, .traced = true});
  ASSERT_EQ(run.step(), "");
  EXPECT_GE(run.trace().step_seconds, 3e-3 * kMicrobatches + 2e-3);
  EXPECT_EQ(check(run.trace()), std::vector<std::string>{});
}

// Messages of 2 ms are sent all at once and received two at a time: on a shared link one waits for the other.
TEST(Loop, MessagesShareTheirLink) {
  Program program = two_stages();
  std::vector<Action>& actions = program.ranks[0].actions;
  std::stable_partition(actions.begin(), actions.end(),
                        [](const Action& action) { return action.kind != ActionKind::kWaitSend; });
  Timing timing = even_timing(program, [](const Body&) { return 0.0; }, {to_picoseconds(2e-3), 0});
  for (bool shared : {false, true}) {
    HollowRun run(program, {.clock = ClockKind::kEmulated, .timing = timing, .shared_links = shared});
    for (int step = 0; step < 2; ++step) {
      ASSERT_EQ(run.step(), "");
      EXPECT_GE(run.finished(), (shared ? 2e-3 : 1e-3) * kMicrobatches);
    }
  }
}

// All transfers of both ranks in one queue, the last first: rank 1 gets nothing before everything was sent.
TEST(Loop, AQueueLetsOneTransferPassAtATime) {
  Program program = two_stages();
  for (RankProgram& rank : program.ranks) {
    std::vector<Action>& actions = rank.actions;
    std::stable_partition(actions.begin(), actions.end(),
                          [](const Action& action) { return action.kind == ActionKind::kPostReceive; });
    std::stable_partition(actions.begin(), actions.end(),
                          [](const Action& action) { return action.kind != ActionKind::kWaitSend; });
  }
  std::vector<int32_t> order(kMicrobatches);
  for (int k = 0; k < kMicrobatches; ++k) order[k] = kMicrobatches - 1 - k;
  Timing timing = even_timing(program, [](const Body&) { return 1.0; }, {to_picoseconds(2), 0});
  // Sent at 1, 2, ..., 8; the one for rank 1's first body passes last, at 8 + 8 x 2.
  HollowRun run(program, {.clock = ClockKind::kVirtual, .timing = timing, .queues = {order, order}});
  for (int step = 0; step < 2; ++step) {
    ASSERT_EQ(run.step(), "");
    EXPECT_EQ(run.finished(), 8 + 8 * 2 + 8);
  }
}

TEST(Loop, AThrowNamesRankStepActionAndPeer) {
  Program program = two_stages();
  HollowRun run(program, {.fault = Fault{Fault::kThrow, 1, 5, 1}});
  EXPECT_EQ(run.step(), "rank 1, step 1, action 5 (wait_receive, peer 0): a fault was put here");
}

// Rank 0 never comes back: rank 1, which waits for it, stops within the deadline.
TEST(Loop, AStallEndsTheRunWithinItsDeadline) {
  Program program = two_stages();
  HollowRun run(program, {.patience = 0.05, .fault = Fault{Fault::kStall, 0, 3, 2}});
  ASSERT_EQ(run.step(), "");
  Picoseconds begin = steady_now();
  EXPECT_EQ(run.step(),
            "no rank has gone on for 0.05 s, the deadline of the plan\n"
            "  rank 0, step 2, action 3 (run stage) does not come back\n"
            "  rank 1, step 2, action 5 (wait_receive, peer 0) waits for rank 0 to send (tag 1)");
  EXPECT_LT(to_seconds(steady_now() - begin), 2);
}

TEST(Routes, TheKthSendMeetsTheKthReceiveOfItsTag) {
  Program program;
  program.ranks.resize(2);
  auto add = [&](int rank, ActionKind kind, int32_t slot, int32_t tag) {
    program.ranks[rank].actions.push_back(
        {.kind = kind, .slot = {Space::kRank, slot}, .peer = 1 - rank, .tag = tag});
  };
  for (int32_t slot : {0, 1}) add(0, ActionKind::kSend, slot, 7);
  add(0, ActionKind::kSend, 2, 8);
  for (int32_t slot : {2, 1, 0}) add(0, ActionKind::kWaitSend, slot, slot == 2 ? 8 : 7);
  add(1, ActionKind::kPostReceive, 5, 8);
  for (int32_t slot : {6, 7}) add(1, ActionKind::kPostReceive, slot, 7);
  add(1, ActionKind::kWaitReceive, 7, 7);
  add(1, ActionKind::kWaitReceive, 4, 7);
  Routes routes = routes_of(program);
  EXPECT_EQ(routes.transfers, 3);
  EXPECT_EQ(routes.transfer[0], (std::vector<int32_t>{0, 1, 2, 2, 1, 0}));
  EXPECT_EQ(routes.transfer[1], (std::vector<int32_t>{2, 0, 1, 1, -1}));
}

}  // namespace
}  // namespace partita::run
