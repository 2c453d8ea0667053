#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>

#include "base/error.h"
#include "reshard/balance.h"
#include "reshard/boxes.h"
#include "reshard/cache.h"
#include "reshard/placement.h"
#include "reshard/replay.h"
#include "reshard/reshard.h"

namespace partita::reshard {
namespace {

Problem make(std::vector<int64_t> shape, std::string_view from, std::string_view to,
             std::string_view groups = "") {
  Problem problem{shape, 1, parse_boxes(from, shape, "from"), parse_boxes(to, shape, "to"), {}, {}};
  if (!groups.empty()) problem.groups = parse_groups(groups, "groups");
  return problem;
}

std::vector<int32_t> real_ranks(const Hop& hop, const Collective& collective) {
  std::vector<int32_t> ranks;
  for (int32_t number : collective.ranks) ranks.push_back(hop.cells->devices[number]);
  return ranks;
}

TEST(ReshardSolve, AllGatherKeepsChunkOrder) {
  Answer answer = solve(make({8}, "0[0:2] | 2[2:4] | 1[4:6] | 3[6:8]", "0[0:8] | 1[0:8] | 2[0:8] | 3[0:8]"));
  ASSERT_EQ(answer.hops.size(), 1u);
  ASSERT_EQ(answer.hops[0].collectives.size(), 1u);
  EXPECT_EQ(answer.hops[0].collectives[0].op, Op::kAllGather);
  EXPECT_EQ(answer.hops[0].collectives[0].dim, 0);
  EXPECT_EQ(real_ranks(answer.hops[0], answer.hops[0].collectives[0]), (std::vector<int32_t>{0, 2, 1, 3}));
}

TEST(ReshardSolve, RecognisesCollectives) {
  auto op = [](const Problem& problem) {
    Answer answer = solve(problem);
    return answer.hops[0].collectives.empty() ? "exchange"
                                              : std::string(to_text(answer.hops[0].collectives[0].op));
  };
  EXPECT_EQ(op(make({8, 8}, "0[0:8,0:8]v0/2 | 1[0:8,0:8]v1/2", "0[0:8,0:8] | 1[0:8,0:8]")), "all-reduce");
  EXPECT_EQ(op(make({8, 8}, "0[0:8,0:8]v0/2 | 1[0:8,0:8]v1/2", "1[0:8,0:4] | 0[0:8,4:8]")), "reduce-scatter");
  EXPECT_EQ(op(make({8, 8}, "0[0:4,0:8] | 1[4:8,0:8]", "0[0:8,0:4] | 1[0:8,4:8]")), "all-to-all");
  EXPECT_EQ(op(make({8, 8}, "0[0:4,0:8] | 1[4:8,0:8]", "1[0:4,0:8] | 0[4:8,0:8]")), "exchange");
  EXPECT_EQ(op(make({8, 8}, "0[0:8,0:8]", "1[0:8,0:8]")), "exchange");
}

// Two replicas of four addends to eight copies: a sum in each team moves 12, slice + reduce-scatter +
// all-gather 10. The mesh is found in any order of devices.
TEST(ReshardSolve, ComposesThroughAMesh) {
  for (const std::array<int, 8>& order : {std::array{0, 1, 2, 3, 4, 5, 6, 7}, {5, 2, 7, 0, 3, 6, 1, 4}}) {
    std::string from, to;
    for (int i = 0; i < 8; ++i) {
      from += fmt::format("{}{}[0:16]v{}/4", i ? " | " : "", order[i], i % 4);
      to += fmt::format("{}{}[0:16]", i ? " | " : "", i);
    }
    Answer answer = solve(make({16}, from, to));
    EXPECT_EQ(answer.total_bytes, 160);
    EXPECT_EQ(answer.bound_bytes, 160);
    EXPECT_EQ(answer.max_recv_bytes, 20);
    std::string ops;
    for (const Hop& hop : answer.hops)
      for (const Collective& collective : hop.collectives) ops += std::string(to_text(collective.op)) + " ";
    EXPECT_EQ(ops, "reduce-scatter reduce-scatter all-gather ");
  }
}

TEST(ReshardSolve, SendsOneCopyAcross) {
  Answer answer = solve(make({12}, "0[0:12]", "1[0:12] | 4[0:12] | 5[0:12] | 6[0:12]", "0 1 2 3|4 5 6 7"));
  EXPECT_EQ(answer.total_bytes, 48);
  EXPECT_EQ(answer.cross_group_bytes, 12);
  answer = solve(make({12}, "0[0:12]v0/2 | 1[0:12]v1/2", "4[0:12] | 5[0:12]", "0 1 2 3|4 5 6 7"));
  EXPECT_EQ(answer.total_bytes, 36);
  EXPECT_EQ(answer.cross_group_bytes, 12);
}

// P09: four addends to copies on two of the devices; two chains and an exchange give every device the same
// load.
TEST(ReshardSolve, BalancesSums) {
  Answer answer =
      solve(make({64}, "0[0:64]v0/4 | 1[0:64]v1/4 | 2[0:64]v2/4 | 3[0:64]v3/4", "0[0:64] | 1[0:64]"));
  EXPECT_EQ(answer.total_bytes, 256);
  EXPECT_EQ(answer.max_recv_bytes, 64);
  EXPECT_EQ(answer.max_send_bytes, 64);
}

// Two cells of one element each are one class: each holder sends one.
TEST(ReshardSolve, BalancesSmallCells) {
  Answer answer = solve(make({2}, "0[0:2] | 1[0:2]", "4[0:1] | 4[1:2]"));
  EXPECT_EQ(answer.total_bytes, 2);
  EXPECT_EQ(answer.max_send_bytes, 1);
}

// Wanted complete and as addends: one transfer serves the addends, and no two devices then have the value
// together, so two more and not one make it.
TEST(ReshardSolve, TheFirstCompleteSumMayNeedTwoTransfers) {
  Answer answer = solve(make({1},
                             "0[0:1]v0/6 | 0[0:1]v1/6 | 0[0:1]v4/6 | 0[0:1]v5/6 | 1[0:1]v1/6 | 1[0:1]v3/6 | "
                             "1[0:1]v4/6 | 2[0:1]v1/6 | 2[0:1]v2/6",
                             "0[0:1]v1/2 | 1[0:1]v0/2 | 2[0:1]"));
  EXPECT_EQ(answer.total_bytes, 3);
  EXPECT_EQ(answer.bound_bytes, 3);
  EXPECT_TRUE(answer.proved);
}

// Many addends on few devices to many: more ways to deal them than can be tried, and still proved.
TEST(ReshardSolve, DealsManyAddends) {
  std::string from, to;
  for (int i = 0; i < 8; ++i) {
    std::string addend = "[0:4]v" + std::to_string(i) + "/8";
    from += (i ? " | " : "") + std::to_string(i % 3) + addend + " | " + std::to_string(3 + i % 2) + addend;
    to += (i ? " | " : "") + std::to_string(i % 4) + addend + " | " + std::to_string(5 + i % 2) + addend;
  }
  Answer answer = solve(make({4}, from, to));
  EXPECT_TRUE(answer.proved);
  EXPECT_EQ(answer.total_bytes, answer.bound_bytes);
}

// Copies to copies and addends at one place: one target takes the copy, and that is the least.
TEST(ReshardSolve, CompleteAndAddendsFromCopies) {
  Answer answer = solve(make({10}, "0[0:7] | 1[3:10]", "0[0:10] | 1[0:3] | 2[0:10]v0/2 | 2[0:10]v1/2"));
  EXPECT_TRUE(answer.proved);
  EXPECT_EQ(answer.total_bytes, 16);
}

TEST(ReshardSolve, CopiesBecomeAddendsForNothing) {
  Answer answer = solve(make({8}, "0[0:8] | 1[0:8]", "0[0:8]v0/2 | 1[0:8]v1/2"));
  EXPECT_EQ(answer.total_bytes, 0);
  EXPECT_EQ(answer.launches, 0);
}

TEST(ReshardSolve, AddendsOfAddends) {
  EXPECT_EQ(solve(make({8}, "0[0:8]v0/2 | 1[0:8]v2/4 | 1[0:8]v3/4", "0[0:8]")).total_bytes, 8);
  EXPECT_THROW(solve(make({8}, "0[0:8]v0/2 | 1[0:8]v1/4", "0[0:8]")), InputError);
  EXPECT_THROW(solve(make({8}, "0[0:8]v0/2", "0[0:8]")), InputError);
  EXPECT_THROW(solve(make({8}, "0[0:4]", "0[0:8]")), InputError);
}

TEST(ReshardCache, TakesNoCostFromAnotherShape) {
  Cache cache;
  Problem small = make({8}, "0[0:4] | 1[4:8]", "0[0:8] | 1[0:8]");
  auto first = cache.solve(small);
  EXPECT_EQ(cache.solve(small), first);
  Problem twice = small;
  twice.elem_bytes = 2;
  EXPECT_EQ(cache.solve(twice)->total_bytes, 2 * first->total_bytes);
  EXPECT_EQ(cache.solve(twice)->bound_bytes, 2 * first->bound_bytes);
  EXPECT_EQ(cache.solve(make({16}, "0[0:8] | 1[8:16]", "0[0:16] | 1[0:16]"))->total_bytes,
            2 * first->total_bytes);
  EXPECT_EQ(cache.size(), 3u);
}

// The same layouts on a larger shape: the known steps, everything about their size new.
TEST(ReshardCache, ScalesTheStepsOfTheSameLayouts) {
  Cache cache;
  cache.solve(make({32, 32}, "0[0:16,0:32] | 1[16:32,0:32]", "0[0:32,0:16] | 1[0:32,16:32]"));
  Problem large = make({256, 128}, "0[0:128,0:128] | 1[128:256,0:128]", "0[0:256,0:64] | 1[0:256,64:128]");
  large.elem_bytes = 2;
  Answer scaled = *cache.solve(large), alone = solve(large);
  EXPECT_EQ(cache.solved(), 1u);
  EXPECT_EQ(cache.size(), 2u);
  EXPECT_EQ(scaled.total_bytes, alone.total_bytes);
  EXPECT_EQ(scaled.bound_bytes, alone.bound_bytes);
  EXPECT_EQ(scaled.max_recv_bytes, alone.max_recv_bytes);
  EXPECT_EQ(scaled.hops[0].to, large.to);
  EXPECT_EQ(scaled.hops[0].collectives[0].blocks, alone.hops[0].collectives[0].blocks);
  // 15 and 16 rows do not divide alike, and with links the size decides.
  cache.solve(make({30, 32}, "0[0:15,0:32] | 1[15:30,0:32]", "0[0:30,0:16] | 1[0:30,16:32]"));
  EXPECT_EQ(cache.solved(), 2u);
  large.links = Links{{1e9, 1e9, 1e-6}, {1e9, 1e9, 1e-6}};
  cache.solve(large);
  EXPECT_EQ(cache.solved(), 3u);
}

// I16 of the case file: the placement 0 2 1 3 lets every device keep half of what it needs.
TEST(ReshardPlacement, KeepsWhatIsAtHome) {
  OpenPlacement open{make({4, 4}, "0[0:2,0:2] | 1[0:2,2:4] | 2[2:4,0:2] | 3[2:4,2:4]",
                          "0[0:4,0:1] | 1[0:4,1:2] | 2[0:4,2:3] | 3[0:4,3:4]"),
                     {},
                     {0, 1, 2, 3}};
  std::vector<int32_t> placed = place(open);
  EXPECT_EQ(placed_bytes(open, placed), 8);
  EXPECT_EQ(placed_bytes(open, open.devices), 12);
  open.backward = Problem{{4, 4}, 1, open.forward.to, open.forward.from, {}, {}};
  EXPECT_EQ(placed_bytes(open, place(open)), 16);
}

// Reading whole copies costs nothing forward, but then both devices make the gradient of everything, as
// addends that must be summed. Halves cost nothing forward, and their gradients only have to be gathered.
TEST(ReshardPlacement, ChoosesForwardAndBackwardTogether) {
  Problem forward = make({8}, "0[0:8] | 1[0:8]", "0[0:8] | 1[0:8]");
  OpenLayout open{forward, forward.from, {}};
  auto boxes = [](std::string_view text) { return parse_boxes(text, {8}, "boxes"); };
  open.admissible.push_back({boxes("0[0:8] | 1[0:8]"), boxes("0[0:8]v0/2 | 1[0:8]v1/2")});
  open.admissible.push_back({boxes("0[0:4] | 1[4:8]"), boxes("0[0:4] | 1[4:8]")});
  open.admissible.push_back({boxes("2[0:8]"), boxes("2[0:8]")});
  LayoutChoice choice = choose_layout(open);
  EXPECT_EQ(choice.chosen, 1u);
  EXPECT_EQ(choice.forward.total_bytes, 0);
  EXPECT_EQ(choice.backward.total_bytes, 8);
  EXPECT_EQ(choice.cost, 8);
  open.gradient = boxes("0[0:8]v0/2 | 1[0:8]v1/2");  // summed later: now the first costs nothing
  EXPECT_EQ(choose_layout(open).chosen, 0u);
  open.admissible.clear();
  EXPECT_THROW(choose_layout(open), InputError);
}

// One copy enters each rack, one each node, and the rest stays inside.
TEST(ReshardSolve, EntersEveryLevelOnce) {
  Problem problem =
      make({8}, "0[0:8]", "0[0:8] | 1[0:8] | 2[0:8] | 3[0:8] | 4[0:8] | 5[0:8] | 6[0:8] | 7[0:8]");
  std::vector<Groups> levels = parse_levels("0 1|2 3;4 5|6 7", "groups");
  ASSERT_EQ(levels.size(), 2u);
  problem.groups = levels[0];
  problem.wider = {levels[1]};
  Answer answer = solve(problem);
  EXPECT_EQ(answer.total_bytes, 56);
  EXPECT_EQ(answer.crossing_bytes, (std::vector<Bytes>{8, 24}));
  EXPECT_EQ(answer.bound_crossing_bytes, answer.crossing_bytes);
  std::swap(problem.from, problem.to);  // and the same for sums on their way to one device
  for (int i = 0; i < 8; ++i) problem.from[i].addend = {i, 8};
  answer = solve(problem);
  EXPECT_EQ(answer.total_bytes, 56);
  EXPECT_EQ(answer.crossing_bytes, (std::vector<Bytes>{8, 24}));
  for (auto [device, seconds] : {std::pair(1, 2.0), std::pair(2, 4.0), std::pair(4, 8.0)}) {
    Problem one = make({8}, "0[0:8]", fmt::format("{}[0:8]", device));
    one.groups = problem.groups;
    one.wider = problem.wider;
    one.links = Links{{4, 4, 0}, {2, 2, 0}, {{1, 1, 0}}};
    EXPECT_NEAR(solve(one).seconds, seconds, 1e-9);
  }
}

TEST(ReshardBalance, GivesAwayAlongPaths) {
  // 0 serves all; 1 can serve the first, and 2, who gets the first, can pass the second on.
  std::vector<Tree> trees = {{{0, 1}, {2}, 1, {{0, 2}}}, {{0}, {2, 3}, 1, {{0, 2}, {0, 3}}}};
  std::vector<int64_t> busy = {3, 0, 0, 0};
  balance(trees, {}, busy, 1000);
  EXPECT_EQ(busy, (std::vector<int64_t>{1, 1, 1, 0}));
  EXPECT_EQ(trees[0].edges[0].parent, 1);
  ASSERT_EQ(trees[1].edges.size(), 2u);
  EXPECT_EQ(trees[1].edges[0].parent, 0);
  EXPECT_EQ(trees[1].edges[1].parent, trees[1].edges[0].child);
}

// Where latency is all that counts, fewer rounds win over fewer bytes, and the answer says what that saves.
TEST(ReshardSolve, LinksMayPreferMoreBytes) {
  Problem problem = make({64}, "0[0:64]v0/4 | 1[0:64]v1/4 | 2[0:64]v2/4 | 3[0:64]v3/4", "0[0:64] | 1[0:64]");
  Answer least = solve(problem);
  problem.links = Links{{1e12, 1e12, 1.0}, {1e12, 1e12, 1.0}};
  Answer fast = solve(problem);
  EXPECT_LE(fast.seconds, fast.least_bytes_seconds);
  EXPECT_LE(fast.launches, least.launches);
  problem.links = Links{{1.0, 1.0, 1e-9}, {1.0, 1.0, 1e-9}};
  EXPECT_NEAR(solve(problem).seconds, 64, 1e-6);
}

// The replay must refuse what is broken: every change of a right exchange or collective below is caught.
class Broken : public testing::Test {
 protected:
  Problem problem_ = make({12}, "0[0:12]v0/3 | 1[0:12]v1/3 | 2[0:12]v2/3", "0[0:12] | 3[0:12]");
  Cells cells_ = cut(problem_);
  Exchange exchange_ = make_exchange(cells_, make_agenda(cells_), 2);
};

TEST_F(Broken, RightIsAccepted) { EXPECT_EQ(replay(cells_, exchange_), ""); }

TEST_F(Broken, EveryMissingOrTurnedMoveIsCaught) {
  for (size_t m = 0; m < exchange_.moves.size(); ++m) {
    Exchange wrong = exchange_;
    std::swap(wrong.moves[m].from, wrong.moves[m].to);
    EXPECT_NE(replay(cells_, wrong), "") << m;
    wrong = exchange_;
    wrong.moves[m].to = (wrong.moves[m].to + 1) % cells_.num_devices();
    EXPECT_NE(replay(cells_, wrong), "") << m;
    if (exchange_.moves[m].add) {
      wrong = exchange_;
      wrong.moves[m].add = false;
      EXPECT_NE(replay(cells_, wrong), "") << m;
    }
    wrong = exchange_;
    wrong.moves.erase(wrong.moves.begin() + m);
    for (Block& block : wrong.blocks) block.move_begin -= block.move_begin > static_cast<int32_t>(m);
    EXPECT_NE(replay(cells_, wrong), "") << m;
  }
}

TEST_F(Broken, EveryWrongTakeIsCaught) {
  for (size_t t = 0; t < exchange_.takes.size(); ++t) {
    Exchange wrong = exchange_;
    wrong.takes[t].tile = (wrong.takes[t].tile + 1) % 3;
    EXPECT_NE(replay(cells_, wrong), "") << t;
    wrong = exchange_;
    wrong.takes[t].device = 3;
    EXPECT_NE(replay(cells_, wrong), "") << t;
  }
}

TEST_F(Broken, AMissingBlockIsCaught) {
  Exchange wrong = exchange_;
  wrong.blocks.erase(wrong.blocks.begin());
  EXPECT_NE(replay(cells_, wrong), "");
}

TEST(ReshardReplay, WrongCollectivesAreCaught) {
  Problem problem = make({8}, "0[0:2] | 1[2:4] | 2[4:6] | 3[6:8]", "0[0:8] | 1[0:8] | 2[0:8] | 3[0:8]");
  Cells cells = cut(problem);
  std::vector<Collective> right = find_collectives(problem, cells);
  ASSERT_EQ(right.size(), 1u);
  EXPECT_EQ(replay(cells, right), "");
  std::vector<Collective> wrong = right;
  std::swap(wrong[0].ranks[1], wrong[0].ranks[2]);
  EXPECT_NE(replay(cells, wrong), "");
  wrong = right;
  wrong[0].ranks.pop_back(), wrong[0].blocks.pop_back();
  EXPECT_NE(replay(cells, wrong), "");
  wrong = right;
  wrong[0].op = Op::kAllReduce;
  EXPECT_NE(replay(cells, wrong), "");
  EXPECT_NE(replay(cells, std::vector<Collective>{}), "");
}

}  // namespace
}  // namespace partita::reshard
