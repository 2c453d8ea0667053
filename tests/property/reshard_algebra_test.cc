// Laws of regions and addends against brute force on element sets.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "reshard/region.h"

namespace partita::reshard {
namespace {

constexpr uint64_t kSeed = 20240611;
constexpr int kCases = 2000;

Region random_region(std::mt19937_64& random) {
  Region region;
  for (int d = 0; d < 3; ++d) {
    int64_t begin = random() % 5;
    region.push_back({begin, begin + 1 + int64_t(random() % 4)});
  }
  return region;
}

std::set<int64_t> elements(const Region& region) {
  std::set<int64_t> set;
  for (int64_t i = region[0].begin; i < region[0].end; ++i)
    for (int64_t j = region[1].begin; j < region[1].end; ++j)
      for (int64_t k = region[2].begin; k < region[2].end; ++k) set.insert((i * 16 + j) * 16 + k);
  return set;
}

/// The elements; fails where the regions are not disjoint.
std::set<int64_t> elements(const std::vector<Region>& regions, bool disjoint) {
  std::set<int64_t> all;
  size_t sum = 0;
  for (const Region& region : regions) {
    std::set<int64_t> part = elements(region);
    sum += part.size();
    all.insert(part.begin(), part.end());
  }
  if (disjoint) {
    EXPECT_EQ(sum, all.size());
  }
  return all;
}

TEST(ReshardAlgebra, RegionsAreSets) {
  std::mt19937_64 random(kSeed);
  SCOPED_TRACE(kSeed);
  for (int i = 0; i < kCases; ++i) {
    Region a = random_region(random), b = random_region(random);
    std::vector<Region> many = {random_region(random), random_region(random), b};
    std::set<int64_t> in_a = elements(a), in_b = elements(b), both, only_a, left;
    for (int64_t e : in_a) (in_b.count(e) ? both : only_a).insert(e);
    EXPECT_EQ(volume(a), int64_t(in_a.size()));
    EXPECT_EQ(intersect(a, b) ? elements(*intersect(a, b)) : std::set<int64_t>{}, both);
    EXPECT_EQ(intersect(a, b), intersect(b, a));
    EXPECT_EQ(elements(subtract(a, b), true), only_a);
    std::set<int64_t> in_many = elements(many, false);
    for (int64_t e : in_a)
      if (!in_many.count(e)) left.insert(e);
    EXPECT_EQ(elements(subtract(a, many), true), left);
    EXPECT_EQ(elements(disjoint(many), true), in_many);
    EXPECT_TRUE(same_elements(many, disjoint(many)));
    EXPECT_EQ(same_elements({a}, {b}), in_a == in_b);
    EXPECT_EQ(contains(a, b), both == in_b);
    EXPECT_TRUE(contains(hull(a, b), a) && contains(hull(a, b), b));
    if (auto joined = concat(a, b)) {
      EXPECT_TRUE(both.empty());
      EXPECT_EQ(volume(*joined), volume(a) + volume(b));
      EXPECT_TRUE(same_elements({*joined}, {a, b}));
    }
  }
}

TEST(ReshardAlgebra, AddendsAreShares) {
  std::mt19937_64 random(kSeed);
  SCOPED_TRACE(kSeed);
  constexpr int64_t kUnits = 5040;  // divides by every count below
  auto draw = [&] {
    int64_t count = 1 + random() % 10;
    return Addend{int64_t(random() % count), count};
  };
  auto units = [](Addend a) {
    std::set<int64_t> set;
    for (int64_t u = a.index * (kUnits / a.count); u < (a.index + 1) * (kUnits / a.count); ++u) set.insert(u);
    return set;
  };
  for (int i = 0; i < kCases / 4; ++i) {
    Addend a = draw(), b = draw();
    std::set<int64_t> in_a = units(a), in_b = units(b), both;
    std::set_intersection(in_a.begin(), in_a.end(), in_b.begin(), in_b.end(),
                          std::inserter(both, both.end()));
    EXPECT_EQ(overlap(a, b), !both.empty());
    EXPECT_EQ(contains(a, b), both == in_b);
    EXPECT_TRUE(contains(a, refine(a, b)));
    EXPECT_EQ(refine(refine(a, b), {0, 1}), refine(a, b));
    if (auto joined = sum(a, b)) {
      in_a.insert(in_b.begin(), in_b.end());
      EXPECT_TRUE(both.empty());
      EXPECT_EQ(units(*joined), in_a);
    }
  }
  // Parts of an addend add up to it, two by two.
  for (int64_t k = 1; k < 6; ++k) {
    Addend outer{2, 3};
    EXPECT_EQ(sum(refine(outer, {0, 2}), refine(outer, {1, 2})), outer);
  }
  EXPECT_EQ(sum({1, 4}, {2, 4}), std::nullopt);
  EXPECT_EQ(sum({0, 4}, {2, 4}), std::nullopt);
}

}  // namespace
}  // namespace partita::reshard
