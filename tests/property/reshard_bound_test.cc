// The bound against brute force: one element, few devices, every sequence of transfers.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "reshard/boxes.h"
#include "reshard/reshard.h"

namespace partita::reshard {
namespace {

constexpr uint64_t kSeed = 20250713;

/// What every device can make: bit m of `sums[d]` says that it can make the sum of the addends in mask m.
using Sums = std::vector<uint32_t>;

uint32_t close(uint32_t sums, int masks) {
  for (bool grown = true; grown;) {
    grown = false;
    for (int a = 1; a < masks; ++a)
      for (int b = 1; b < masks; ++b)
        if ((sums >> a & 1) && (sums >> b & 1) && !(a & b) && !(sums >> (a | b) & 1))
          sums |= 1u << (a | b), grown = true;
  }
  return sums;
}

struct Goal {
  std::vector<int> complete;              // devices
  std::vector<std::vector<int>> addends;  // devices by target
};

/// Can the masks be dealt to the targets so that every device can make what it wants?
bool is_dealt(const Sums& sums, const Goal& goal, size_t target, int left) {
  if (target == goal.addends.size()) return left == 0;
  for (int mask = left;; mask = (mask - 1) & left) {
    bool can = std::all_of(goal.addends[target].begin(), goal.addends[target].end(),
                           [&](int device) { return mask == 0 || (sums[device] >> mask & 1); });
    if (can && is_dealt(sums, goal, target + 1, left & ~mask)) return true;
    if (mask == 0) return false;
  }
}

bool is_reached(const Sums& sums, const Goal& goal, int masks) {
  for (int device : goal.complete)
    if (!(sums[device] >> (masks - 1) & 1)) return false;
  return goal.addends.empty() || is_dealt(sums, goal, 0, masks - 1);
}

/// The fewest transfers, breadth first.
int fewest_transfers(const Sums& start, const Goal& goal, int masks) {
  std::set<Sums> layer = {start}, seen = layer;
  for (int transfers = 0;; ++transfers) {
    std::set<Sums> next;
    for (const Sums& sums : layer) {
      if (is_reached(sums, goal, masks)) return transfers;
      for (size_t from = 0; from < sums.size(); ++from)
        for (size_t to = 0; to < sums.size(); ++to)
          for (int mask = 1; mask < masks; ++mask) {
            if (from == to || !(sums[from] >> mask & 1) || (sums[to] >> mask & 1)) continue;
            Sums after = sums;
            after[to] = close(after[to] | 1u << mask, masks);
            if (seen.insert(after).second) next.insert(after);
          }
    }
    layer = std::move(next);
  }
}

/// One element as addends and copies on a few devices to copies or addends, at random.
Problem draw(std::mt19937_64& random, int32_t most_devices, int64_t most_addends) {
  Problem problem{{1}, 1, {}, {}, {}, {}};
  int32_t devices = 2 + random() % (most_devices - 1);
  for (auto* side : {&problem.from, &problem.to}) {
    int64_t addends = 1 + random() % most_addends;
    for (int64_t i = 0; i < addends; ++i)
      for (int64_t copies = 1 + (random() % 3 == 0); copies > 0; --copies)
        side->push_back({static_cast<int32_t>(random() % devices), {{0, 1}}, {i, addends}});
    if (addends > 1 && random() % 4 == 0)
      side->push_back({static_cast<int32_t>(random() % devices), {{0, 1}}, {0, 1}});
    std::sort(side->begin(), side->end());
    side->erase(std::unique(side->begin(), side->end()), side->end());
  }
  return problem;
}

int brute_force(const Problem& problem) {
  int64_t tiles = 1, targets = 1;
  int32_t devices = 0;
  for (const Piece& piece : problem.from) tiles = std::max(tiles, piece.addend.count);
  for (const Piece& piece : problem.to) targets = std::max(targets, piece.addend.count);
  for (const auto* side : {&problem.from, &problem.to})
    for (const Piece& piece : *side) devices = std::max(devices, piece.device + 1);
  int masks = 1 << tiles;
  Sums start(devices, 0);
  for (const Piece& piece : problem.from)
    start[piece.device] |= 1u << (piece.addend.complete() ? masks - 1 : 1 << piece.addend.index);
  for (uint32_t& sums : start) sums = close(sums, masks);
  Goal goal;
  if (targets > 1) goal.addends.resize(targets);
  for (const Piece& piece : problem.to)
    (piece.addend.complete() ? goal.complete : goal.addends[piece.addend.index]).push_back(piece.device);
  return fewest_transfers(start, goal, masks);
}

/// Every answer has the fewest transfers there are, and a bound that calls itself proved is that number.
void compare(int cases, int32_t most_devices, int64_t most_addends) {
  std::mt19937_64 random(kSeed);
  SCOPED_TRACE(kSeed);
  for (int i = 0; i < cases; ++i) {
    Problem problem = draw(random, most_devices, most_addends);
    SCOPED_TRACE(to_text(problem.from) + " -> " + to_text(problem.to));
    Answer answer = solve(problem);
    int fewest = brute_force(problem);
    EXPECT_LE(answer.bound_bytes, fewest);
    EXPECT_EQ(answer.total_bytes, fewest);
    if (answer.proved) {
      EXPECT_EQ(answer.bound_bytes, fewest);
    }
    if (testing::Test::HasFailure()) return;
  }
}

TEST(ReshardBound, IsTheFewestTransfersOfAll) { compare(1500, 4, 3); }
TEST(ReshardBound, IsTheFewestTransfersOfFourAddends) { compare(300, 3, 4); }
TEST(ReshardBound, IsTheFewestTransfersOfFourAddendsOnFourDevices) { compare(1000, 4, 4); }

}  // namespace
}  // namespace partita::reshard
