#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "run/cpu/memory_pool.h"

namespace partita::run {
namespace {

TEST(MemoryPool, GivesTheSameBlockAgain) {
  MemoryPool pool;
  void* first = pool.take(1 << 20);
  pool.give_back(first);
  EXPECT_EQ(pool.take(1 << 20), first);
}

TEST(MemoryPool, TakesTheSmallestThatFits) {
  MemoryPool pool;
  void* small = pool.take(1000);
  void* wall = pool.take(64);
  void* large = pool.take(5000);
  pool.take(64);
  pool.give_back(large);
  pool.give_back(small);
  EXPECT_EQ(pool.take(900), small);
  EXPECT_EQ(pool.take(900), large);
  pool.give_back(wall);
}

TEST(MemoryPool, JoinsNeighboursOnBothSides) {
  MemoryPool pool;
  void* a = pool.take(4096);
  void* b = pool.take(4096);
  void* c = pool.take(4096);
  pool.take(64);
  for (void* block : {a, c, b}) pool.give_back(block);
  EXPECT_EQ(pool.take(3 * 4096), a);
}

TEST(MemoryPool, ReturnsOnlyRegionsWithoutTakenBlocks) {
  MemoryPool pool;
  size_t wide = size_t{3} << 30;
  void* kept = pool.take(100);
  void* gone = pool.take(wide);
  EXPECT_GE(pool.reserved(), wide + 100);
  pool.give_back(gone);
  pool.trim();
  EXPECT_LT(pool.reserved(), wide);
  std::memset(kept, 1, 100);
  pool.give_back(kept);
  pool.trim();
  EXPECT_EQ(pool.reserved(), 0u);
}

// Every thread fills its blocks with its own byte: a block given out twice would show the other's.
TEST(MemoryPool, NeverGivesOutABlockTwice) {
  MemoryPool pool;
  auto work = [&](unsigned char mark) {
    std::mt19937 random(mark);
    std::vector<std::pair<unsigned char*, size_t>> mine;
    for (int i = 0; i < 3000; ++i) {
      if (mine.size() < 20 && random() % 2) {
        size_t bytes = 1 + random() % 20000;
        auto* block = static_cast<unsigned char*>(pool.take(bytes));
        ASSERT_EQ(reinterpret_cast<uintptr_t>(block) % 64, 0u);
        std::memset(block, mark, bytes);
        mine.push_back({block, bytes});
      } else if (!mine.empty()) {
        std::swap(mine[random() % mine.size()], mine.back());
        auto [block, bytes] = mine.back();
        ASSERT_TRUE(std::all_of(block, block + bytes, [&](unsigned char c) { return c == mark; }));
        pool.give_back(block);
        mine.pop_back();
      }
    }
    for (auto [block, bytes] : mine) pool.give_back(block);
  };
  std::thread a(work, 1), b(work, 2);
  a.join(), b.join();
  pool.trim();
  EXPECT_EQ(pool.reserved(), 0u);
}

}  // namespace
}  // namespace partita::run
