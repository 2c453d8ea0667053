#include <gtest/gtest.h>

#include "program/walk.h"
#include "program_small.h"

namespace partita::program {
namespace {

std::vector<Event> walk(const Program& program, std::string* story = nullptr) {
  std::vector<Event> events;
  Walker walker(program);
  while (const Event* event = walker.next()) events.push_back(*event);
  if (story) *story = walker.story();
  return events;
}

TEST(Walk, DoesEverythingOnceAndInOrder) {
  SmallProgram small = pipeline_program(2);
  std::string story;
  std::vector<Event> events = walk(small.program, &story);
  EXPECT_EQ(story, "");
  std::map<int32_t, At> last;
  std::map<Event::Kind, int> count;
  for (const Event& event : events) {
    ++count[event.kind];
    for (const At& at : event.members) {
      At& before = last[at.rank];
      // A body's return has no instruction and comes after all of them.
      EXPECT_TRUE(at.action > before.action || event.kind == Event::kReturn || at.instr > before.instr);
      before = at;
    }
  }
  EXPECT_EQ(count[Event::kSend], 4);
  EXPECT_EQ(count[Event::kPostReceive], 4);
  EXPECT_EQ(count[Event::kWaitReceive], 4);
  EXPECT_EQ(count[Event::kWaitSend], 4);
}

TEST(Walk, JoinsBothEndsOfATransfer) {
  SmallProgram small = pipeline_program(2);
  std::map<int32_t, std::map<Event::Kind, int>> transfers;
  for (const Event& event : walk(small.program))
    if (event.transfer >= 0) ++transfers[event.transfer][event.kind];
  EXPECT_EQ(transfers.size(), 4u);
  for (const auto& [transfer, ends] : transfers)
    for (Event::Kind kind : {Event::kSend, Event::kPostReceive, Event::kWaitReceive, Event::kWaitSend})
      EXPECT_EQ(ends.at(kind), 1) << transfer;
}

TEST(Walk, MeetsInGroupOrder) {
  SmallProgram small = grid_program(3, 1, 1, {2, 1, 1});
  for (RankProgram& rank : small.program.ranks) rank.groups[0] = {2, 0, 1};
  int met = 0;
  for (const Event& event : walk(small.program)) {
    if (event.kind != Event::kCollective) continue;
    ++met;
    ASSERT_EQ(event.members.size(), 3u);
    EXPECT_EQ(event.members[0].rank, 2);
    EXPECT_EQ(event.members[2].rank, 1);
  }
  EXPECT_EQ(met, 4);
}

/// Two ranks that each run one body of these collectives.
Program meetings(const std::vector<std::vector<Instr>>& bodies,
                 const std::vector<std::vector<int32_t>>& groups) {
  Program program;
  for (size_t r = 0; r < bodies.size(); ++r) {
    program.bodies.push_back({.name = "body" + std::to_string(r), .instrs = bodies[r]});
    program.ranks.push_back(
        {.actions = {SmallProgram::run(BodyId{static_cast<int32_t>(r)})}, .groups = groups});
  }
  return program;
}
Instr all_reduce(int32_t group) {
  return {
      .kind = InstrKind::kAllReduce, .in = {{Space::kRank, 0}}, .out = {{Space::kRank, 0}}, .group = group};
}
Instr gather(int32_t group) {
  return {
      .kind = InstrKind::kAllGather, .in = {{Space::kRank, 0}}, .out = {{Space::kRank, 1}}, .group = group};
}

TEST(Walk, TellsWhoWaitsForWhom) {
  std::string story;
  walk(meetings({{all_reduce(0), gather(0)}, {gather(0), all_reduce(0)}}, {{0, 1}}), &story);
  EXPECT_EQ(story,
            "rank 0 waits at action 0 in body0, instruction 0, all_reduce over ranks [0, 1], for rank 1; "
            "rank 1 waits at action 0 in body1, instruction 0, all_gather over ranks [0, 1], for rank 0");
}

TEST(Walk, TellsOfARankThatHasEnded) {
  std::string story;
  walk(meetings({{all_reduce(0), all_reduce(0)}, {all_reduce(0)}}, {{0, 1}}), &story);
  EXPECT_EQ(story,
            "rank 0 waits at action 0 in body0, instruction 1, all_reduce over ranks [0, 1], for rank 1; "
            "rank 1 has ended");
}

TEST(Walk, DoesNotTakeAnotherOrderOfTheGroupForTheSame) {
  Program program = meetings({{all_reduce(0)}, {all_reduce(0)}}, {{0, 1}});
  program.ranks[1].groups = {{1, 0}};
  std::string story;
  walk(program, &story);
  EXPECT_EQ(story,
            "rank 0 waits at action 0 in body0, instruction 0, all_reduce over ranks [0, 1], for rank 1; "
            "rank 1 waits at action 0 in body1, instruction 0, all_reduce over ranks [1, 0], for rank 0");
}

TEST(Walk, TellsTheCircleAndCountsTheRest) {
  // Ranks 0 and 1 wait for each other, rank 2 for rank 0.
  Program program =
      meetings({{all_reduce(0), all_reduce(1)}, {gather(0)}, {all_reduce(1)}}, {{0, 1}, {0, 2}});
  program.ranks[1].groups = {{0, 1}};
  std::string story;
  walk(program, &story);
  EXPECT_NE(story.find("rank 1 waits at action 0 in body1, instruction 0, all_gather"), story.npos) << story;
  EXPECT_TRUE(story.ends_with("; 1 more rank waits for these")) << story;
}

TEST(Walk, TellsOfAWaitWithoutItsTransfer) {
  Program program;
  program.ranks.resize(2);
  for (RankProgram& rank : program.ranks) rank.rank_slots = 1;
  program.ranks[0].actions = {
      {.kind = ActionKind::kWaitReceive, .slot = {Space::kRank, 0}, .peer = 1, .tag = 3}};
  std::string story;
  walk(program, &story);
  EXPECT_EQ(story, "rank 0 waits at action 0 for a receive of r0 that it has not begun; rank 1 has ended");
}

}  // namespace
}  // namespace partita::program
