#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "base/error.h"
#include "run/assembly.h"
#include "run/compare.h"
#include "run/cpu/cpu_memory.h"
#include "run/cpu/strided.h"
#include "run/cut.h"
#include "run/draw.h"

namespace partita::run {
namespace {

HostTensor counting(Shape shape, DType dtype = DType::kFloat32) {
  std::vector<double> values(numel(shape));
  std::iota(values.begin(), values.end(), 0);
  return from_doubles(std::move(shape), dtype, values);
}

TensorType dense(Shape shape, DType dtype = DType::kFloat32) { return {shape, row_major(shape), dtype}; }

std::vector<double> slice(const HostTensor& whole, const Leaves& leaves, const Box& box,
                          const TensorType& type) {
  HostTensor part(type.shape, type.dtype);
  slice_box(whole, leaves, box, part.data.data(), type);
  return to_doubles(part);
}

TEST(Box, InnerLeafIsStridedInTheWholeAndDenseOnItsRank) {
  // [2, 3*4*2], heads [1, 3) of 4.
  HostTensor whole = counting({2, 24});
  Box box = {{{0, 2}}, {{0, 3}, {1, 3}, {0, 2}}};
  std::vector<double> expected;
  for (int row = 0; row < 2; ++row)
    for (int q = 0; q < 3; ++q)
      for (int head = 1; head < 3; ++head)
        for (int e = 0; e < 2; ++e) expected.push_back(row * 24 + q * 8 + head * 2 + e);
  EXPECT_EQ(slice(whole, {{2}, {3, 4, 2}}, box, dense({2, 12})), expected);
}

TEST(Box, LocalTensorMayBeTransposed) {
  HostTensor whole = counting({3, 4});
  TensorType columns{{2, 4}, {1, 2}, DType::kFloat32};
  EXPECT_EQ(slice(whole, {{3}, {4}}, {{{1, 3}}, {{0, 4}}}, columns),
            (std::vector<double>{4, 8, 5, 9, 6, 10, 7, 11}));
}

TEST(Box, PlacingUndoesSlicing) {
  for (DType dtype : {DType::kFloat64, DType::kBFloat16, DType::kInt64, DType::kUInt8}) {
    HostTensor whole = counting({3, 1, 8}, dtype), copy({3, 1, 8}, dtype);
    Leaves leaves = {{3}, {}, {2, 4}};
    for (Interval rows : {Interval{0, 2}, Interval{2, 3}})
      for (Interval inner : {Interval{0, 1}, Interval{1, 4}}) {
        Box box = {{rows}, {}, {{0, 2}, inner}};
        HostTensor part(shape_of(box), dtype);
        slice_box(whole, leaves, box, part.data.data(), dense(part.shape, dtype));
        place_box(copy, leaves, box, part.data.data(), dense(part.shape, dtype));
      }
    EXPECT_EQ(copy, whole);
  }
}

TEST(Box, OutsideTheTensorIsRefused) {
  HostTensor whole = counting({4});
  HostTensor part({2}, DType::kFloat32);
  EXPECT_THROW(slice_box(whole, {{4}}, {{{3, 5}}}, part.data.data(), dense({2})), Bug);
}

TEST(Cut, ReadsADimensionAsOuterLengthInner) {
  HostTensor whole = counting({12}), part({6}, DType::kFloat32);
  Walk walk = walk_cut(dense({12}), dense({6}), {.dim = 0, .outer = 2, .inner = 3}, 1);
  CpuMemory().copy({whole.data.data()}, {part.data.data()}, walk, DType::kFloat32);
  EXPECT_EQ(to_doubles(part), (std::vector<double>{3, 4, 5, 9, 10, 11}));
}

TEST(Sum, AddsInTheGivenOrderAndMayWriteIntoASource) {
  HostTensor a = from_doubles({2}, DType::kFloat32, {1e8, 1}), b = from_doubles({2}, DType::kFloat32, {1, 2}),
             c = from_doubles({2}, DType::kFloat32, {-1e8, 3});
  sum_strided(b.data.data(), {a.data.data(), b.data.data(), c.data.data()}, {{2, 1, 1}}, DType::kFloat32);
  EXPECT_EQ(to_doubles(b), (std::vector<double>{(1e8f + 1.0f) - 1e8f, 6}));
}

TEST(Sum, HalfPrecisionRoundsOnce) {
  // 256 + 0.75 + 0.75: rounding after each addition would lose both.
  HostTensor a = from_doubles({1}, DType::kBFloat16, {256}), b = from_doubles({1}, DType::kBFloat16, {0.75});
  sum_strided(a.data.data(), {a.data.data(), b.data.data(), b.data.data()}, {{1, 1, 1}}, DType::kBFloat16);
  EXPECT_EQ(to_doubles(a)[0], 258);
}

TEST(Assembly, ComparesWhatSeveralRanksHold) {
  Assembly assembly({4}, DType::kFloat64, {{4}});
  HostTensor left = from_doubles({3}, DType::kFloat64, {1, 2, 3}),
             right = from_doubles({2}, DType::kFloat64, {3.3, 4});
  assembly.add({{{0, 3}}}, left);
  EXPECT_EQ(assembly.missing(), 1);
  EXPECT_EQ(assembly.disagreement(), 0);
  assembly.add({{{2, 4}}}, right);
  EXPECT_EQ(assembly.missing(), 0);
  EXPECT_NEAR(assembly.disagreement(), 0.3 / 3.3, 1e-12);
}

TEST(Compare, ZeroButForRoundingIsMeasuredAgainstTheOthers) {
  auto one = [](double value) { return from_doubles({1}, DType::kFloat64, {value}); };
  HostTensors reference = {{"big", one(0.01)}, {"key.bias", one(1e-17)}};
  HostTensors values = {{"big", one(0.01)}, {"key.bias", one(-1e-17)}};
  EXPECT_LT(relative_errors(values, reference, 1e-4).at("key.bias"), 1e-10);
  values["big"] = one(0.02);
  EXPECT_NEAR(relative_errors(values, reference, 1e-4).at("big"), 1, 1e-12);
  values.erase("key.bias");
  EXPECT_TRUE(std::isinf(relative_errors(values, reference, 1e-4).at("key.bias")));
}

TEST(Compare, NotANumberIsInfinitelyFar) {
  HostTensors values = {{"w", from_doubles({1}, DType::kFloat32, {NAN})}};
  EXPECT_TRUE(
      std::isinf(relative_errors(values, {{"w", from_doubles({1}, DType::kFloat32, {1})}}, 0).at("w")));
}

TEST(Draw, WeightsAreNeverZeroAndAboutNormal) {
  Tensor matrix{.name = "w", .shape = {200, 300}, .dtype = DType::kFloat64, .role = Role::kParameter};
  std::vector<double> values = to_doubles(draw_weight(matrix, 7));
  double sum = 0, squares = 0;
  for (double v : values) {
    EXPECT_NE(v, 0);
    sum += v;
    squares += v * v;
  }
  EXPECT_NEAR(sum / values.size(), 0, 3e-4);
  EXPECT_NEAR(std::sqrt(squares / values.size()), 0.02, 2e-4);
  EXPECT_NE(values, to_doubles(draw_weight(matrix, 8)));
  Tensor norm{.name = "ln.weight", .shape = {8}, .role = Role::kParameter};
  for (double v : to_doubles(draw_weight(norm, 7))) EXPECT_NEAR(v, 1, 0.4);
}

TEST(Draw, IgnoredLabelsAreUnevenOverSamples) {
  Model model;
  model.tensors = {{.name = "input_ids",
                    .shape = {4, 64},
                    .dtype = DType::kInt64,
                    .role = Role::kBatchInput,
                    .low = 3,
                    .high = 9},
                   {.name = "labels",
                    .shape = {4, 64},
                    .dtype = DType::kInt64,
                    .role = Role::kBatchInput,
                    .low = 0,
                    .high = 9}};
  HostTensors batch = draw_batch(model, 0, {.seed = 1, .ignored_labels = true});
  for (double v : to_doubles(batch.at("input_ids"))) EXPECT_TRUE(v >= 3 && v < 9);
  std::vector<double> labels = to_doubles(batch.at("labels"));
  std::vector<int64_t> kept;
  for (int s = 0; s < 4; ++s)
    kept.push_back(64 - std::count(labels.begin() + s * 64, labels.begin() + s * 64 + 64, -100));
  EXPECT_GT(kept[0], kept[3]);
  EXPECT_GT(kept[3], 0);
  EXPECT_NE(batch, draw_batch(model, 1, {.seed = 1, .ignored_labels = true}));
}

}  // namespace
}  // namespace partita::run
