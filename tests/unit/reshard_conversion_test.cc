// Layouts of a mesh as problems and scripts: what lowering asks for.
#include <gtest/gtest.h>

#include "reshard/boxes.h"
#include "reshard/conversion.h"

namespace partita::reshard {
namespace {

const AxisLayout kWhole = {}, kAddends = AxisLayout::partial();
AxisLayout cut_at(int dim, int leaf) { return AxisLayout::shard(dim, leaf); }

/// [8, 12] whose columns are (3, 4); a mesh of 2 x 2 and one micro-batch.
MeshTensor small() { return {{{{0, 8}}, {{0, 3}, {0, 4}}}, {2, 2, 1}, {0, 1, 2, 3}, 0, 1}; }

TEST(ReshardConversion, LeavesAreDimensions) {
  Problem problem = conversion(small(), {kAddends, cut_at(1, 1), kWhole}, {cut_at(0, 0), kWhole, kWhole});
  EXPECT_EQ(problem.shape, (std::vector<int64_t>{8, 3, 4}));
  EXPECT_EQ(to_text(problem.from),
            "0[0:8,0:3,0:2]v0/2 | 1[0:8,0:3,2:4]v0/2 | 2[0:8,0:3,0:2]v1/2 | 3[0:8,0:3,2:4]v1/2");
  EXPECT_EQ(to_text(problem.to), "0[0:4,0:3,0:4] | 1[0:4,0:3,0:4] | 2[4:8,0:3,0:4] | 3[4:8,0:3,0:4]");
  EXPECT_EQ(leaves_of(small().whole), (std::vector<LeafRef>{{0, 0}, {1, 0}, {1, 1}}));
}

TEST(ReshardConversion, ACollectiveKnowsItsCut) {
  Problem problem = conversion(small(), {kWhole, cut_at(1, 1), kWhole}, {kWhole, kWhole, kWhole});
  std::vector<Script> scripts = write_scripts(problem, solve(problem));
  ASSERT_EQ(scripts.size(), 4u);
  const Script& third = scripts[2];
  ASSERT_EQ(to_text(third),
            "copy 0[0:8,0:3,0:2] -> 1[0:8,0:3,0:4]\n"
            "all-gather 0[0:8,0:3,0:2] -> 2[0:8,0:3,0:4] over 2 3 along 2\n"
            "copy 2[0:8,0:3,0:4] -> 1[0:8,0:3,0:4]\n");
  EXPECT_EQ(third.steps[1].pieces, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(third.targets, (std::vector<int32_t>{1}));
  // The columns as (outer 3, cut 4, inner 1); were the first leaf cut, as (1, 3, 4).
  EXPECT_EQ(around_leaf(leaves_of(small().whole), third.buffers[2], 2), (std::pair<int64_t, int64_t>{3, 1}));
  EXPECT_EQ(around_leaf(leaves_of(small().whole), third.buffers[2], 1), (std::pair<int64_t, int64_t>{1, 4}));
}

TEST(ReshardConversion, AddendsKnowTheirReducer) {
  AxisLayout largest = AxisLayout::partial(Reducer::kMax);
  Problem problem = conversion(small(), {largest, largest, kWhole}, {kWhole, largest, kWhole});
  EXPECT_EQ(problem.reducer, Reducer::kMax);
  EXPECT_EQ(to_text(problem.from),
            "0[0:8,0:3,0:4]v0/4 | 1[0:8,0:3,0:4]v1/4 | 2[0:8,0:3,0:4]v2/4 | 3[0:8,0:3,0:4]v3/4");
  EXPECT_EQ(to_text(Layout{largest, kAddends, kWhole}), "[P(max) P R]");
  EXPECT_NE(largest, kAddends);
}

TEST(ReshardConversion, OneExchangeWhereAnAxisMovesToAnotherLeaf) {
  Problem problem = conversion(small(), {cut_at(0, 0), kWhole, kWhole}, {cut_at(1, 1), kWhole, kWhole});
  Answer answer = solve(problem);
  EXPECT_EQ(answer.total_bytes, answer.bound_bytes);
  EXPECT_EQ(answer.total_bytes, 4 * 8 * 12 / 4);  // gathering first would move 4 * 8 * 12 / 2
}

TEST(ReshardConversion, EmptyPiecesAndScalarsAndMicrobatches) {
  MeshTensor tensor{{{{0, 3}}}, {4, 2}, {0, 1, 2, 3}, 1, 4};
  EXPECT_EQ(to_text(conversion(tensor, {cut_at(0, 0), kWhole}, {kWhole, kWhole}).from),
            "0[0:1] | 1[1:2] | 2[2:3]");
  tensor.whole = {{}, {}};
  EXPECT_EQ(to_text(conversion(tensor, {kAddends, kWhole}, {kWhole, kWhole}).to),
            "0[0:1] | 1[0:1] | 2[0:1] | 3[0:1]");
  // Rows cut over 4 devices and then over 2 micro-batches; the second one is 1 row of each.
  tensor.whole = {{{0, 8}}, {{0, 4}}};
  Problem problem = conversion(tensor, {cut_at(0, 0), cut_at(0, 0)}, {cut_at(0, 0), cut_at(0, 0)});
  EXPECT_EQ(to_text(problem.to), "0[1:2,0:4] | 1[3:4,0:4] | 2[5:6,0:4] | 3[7:8,0:4]");
  EXPECT_EQ(solve(problem).total_bytes, 0);
}

}  // namespace
}  // namespace partita::reshard
