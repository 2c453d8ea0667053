#include <gtest/gtest.h>

#include "certify/algebra/addend.h"
#include "certify/algebra/coverage.h"
#include "program/span.h"

namespace partita::certify {
namespace {

LabelStep loop(int32_t op, int32_t number, int64_t size) {
  return {.op = OpId{op}, .loop = number, .size = size};
}
LabelStep through(int32_t op, int32_t operand) { return {.op = OpId{op}, .set = 0, .operand = operand}; }

Addend holds(const Label& label, std::vector<Region> regions) {
  Addend addend;
  addend.terms[label] = std::move(regions);
  return settled(addend);
}
Addend zero() { return {.zero = true}; }

Clash::Kind clash_of(const Addend& a, const Addend& b) {
  try {
    a + b;
  } catch (const Clash& clash) {
    return clash.kind;
  }
  ADD_FAILURE() << "the sum was not refused";
  return Clash::kTwice;
}

const Label kSum{loop(0, 0, 8)};

TEST(Addend, PiecesAddUpToTheWhole) {
  Addend sum = holds(kSum, {{{0, 3}}}) + holds(kSum, {{{5, 8}}});
  EXPECT_TRUE(sum.partial());
  EXPECT_TRUE((sum + holds(kSum, {{{3, 5}}})).complete());
  EXPECT_TRUE(holds(kSum, {{{0, 8}}}).complete());
}

TEST(Addend, NothingCountsTwice) {
  EXPECT_EQ(clash_of(holds(kSum, {{{0, 3}}}), holds(kSum, {{{2, 5}}})), Clash::kTwice);
  EXPECT_EQ(clash_of({}, {}), Clash::kBothWhole);
  EXPECT_EQ(clash_of({}, holds(kSum, {{{0, 3}}})), Clash::kOneWhole);
}

TEST(Addend, ZeroChangesNothing) {
  Addend some = holds(kSum, {{{0, 3}}});
  EXPECT_EQ(some + zero(), some);
  EXPECT_EQ(zero() + some, some);
  EXPECT_TRUE((zero() + Addend{}).complete());
  EXPECT_TRUE(holds(kSum, {{{3, 3}}}).zero);
}

TEST(Addend, RegionsOfSeveralLoopsTile) {
  // Four ranks, two loops of 2 and 6 cut both: the order of adding does not matter.
  Label label{loop(0, 0, 2), loop(0, 1, 6)};
  std::vector<Addend> parts;
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t j = 0; j < 2; ++j) parts.push_back(holds(label, {{{i, i + 1}, {3 * j, 3 * j + 3}}}));
  for (std::vector<int> order : {std::vector{0, 1, 2, 3}, {0, 3, 1, 2}, {2, 1, 3, 0}}) {
    Addend sum = zero();
    for (int k : order) {
      EXPECT_FALSE(sum.complete());
      sum = sum + parts[k];
    }
    EXPECT_TRUE(sum.complete());
  }
  EXPECT_EQ(clash_of(parts[0] + parts[1], parts[1]), Clash::kTwice);
}

TEST(Addend, EveryWayMustBeThere) {
  // x + y, where x is a sum over ranks and y is added by one of them.
  Label x{loop(0, 0, 4), through(1, 0)}, y{through(1, 1)};
  Addend with, without;
  with.terms = {{x, {{{0, 2}}}}, {y, {Region{}}}};
  without.terms = {{x, {{{2, 4}}}}, {y, {}}};
  EXPECT_TRUE((with + without).complete());
  Addend nobody;
  nobody.terms = {{x, {{{0, 2}}}}, {y, {}}};
  EXPECT_TRUE((nobody + without).partial());
  Addend both;
  both.terms = {{x, {{{2, 4}}}}, {y, {Region{}}}};
  EXPECT_EQ(clash_of(with, both), Clash::kTwice);
}

TEST(Addend, WhatIsMissingAsAWholeIsMissingInPieces) {
  // One rank holds the first operand in pieces and zeros for the second, the other rank the reverse.
  Label x{loop(0, 0, 4), through(1, 0)}, y{loop(2, 0, 4), through(1, 1)};
  Addend first, second;
  first.terms = {{x, {{{0, 4}}}}, {{through(1, 1)}, {}}};
  second.terms = {{{through(1, 0)}, {}}, {y, {{{0, 4}}}}};
  EXPECT_TRUE((first + second).complete());
}

TEST(Addend, DifferentSumsDoNotMix) {
  EXPECT_EQ(clash_of(holds(kSum, {{{0, 3}}}), holds({loop(5, 0, 8)}, {{{3, 8}}})), Clash::kCutDifferently);
  // The same loop through another operand is another part of the result.
  EXPECT_EQ(clash_of(holds({loop(0, 0, 8), through(1, 0)}, {{{0, 3}}}),
                     holds({loop(0, 0, 8), through(1, 1)}, {{{3, 8}}})),
            Clash::kCutDifferently);
}

TEST(Addend, WhatIsTheSameEverywhereCountsByLength) {
  Addend three = holds(kSum, {{anywhere(3)}}), five = holds(kSum, {{anywhere(5)}});
  EXPECT_TRUE((three + five).complete());
  EXPECT_TRUE((three + holds(kSum, {{{0, 5}}})).complete());
  EXPECT_EQ(clash_of(three + three, three), Clash::kTwice);
}

TEST(Span, PiecesMeet) {
  Span out;
  EXPECT_TRUE(meet(anywhere(2), {4, 6}, out));
  EXPECT_EQ(out, (Span{4, 6}));
  EXPECT_TRUE(meet(anywhere(kUnknownLength), anywhere(3), out));
  EXPECT_EQ(out.length(), 3);
  EXPECT_FALSE(meet(anywhere(2), {4, 7}, out));
  EXPECT_FALSE(meet(Span{0, 2}, {2, 4}, out));
}

TEST(Coverage, FindsWhatIsMissing) {
  Box whole{{{0, 4}}, {{0, 6}}};
  EXPECT_TRUE(uncovered(whole, {{{{0, 4}}, {{0, 3}}}, {{{0, 4}}, {{3, 6}}}}).empty());
  EXPECT_TRUE(uncovered(whole, {{{{0, 3}}, {{0, 6}}}, {{{1, 4}}, {{0, 6}}}}).empty());
  std::vector<Box> hole = uncovered(whole, {{{{0, 4}}, {{0, 2}}}, {{{0, 4}}, {{3, 6}}}});
  ASSERT_EQ(hole.size(), 1u);
  EXPECT_EQ(hole[0], (Box{{{0, 4}}, {{2, 3}}}));
  EXPECT_EQ(uncovered(whole, {}), std::vector<Box>{whole});
  EXPECT_TRUE(uncovered({}, {Box{}}).empty());
  EXPECT_EQ(uncovered({}, {}).size(), 1u);
}

}  // namespace
}  // namespace partita::certify
