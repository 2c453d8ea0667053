#include <gtest/gtest.h>

#include "layout/packed.h"
#include "layout/unpack.h"
#include "model/row.h"

namespace partita::layout {
namespace {

constexpr TensorId kX{0}, kWeight{1}, kTurned{2}, kProduct{3}, kWide{4}, kQuery{5}, kKey{6};

Arg at(TensorId id) { return Arg::of(id); }

Op slice(const char* name, int64_t begin, int64_t end, TensorId out) {
  return {.name = name,
          .target = "aten.slice.Tensor",
          .args = {at(kWide), Arg::of(int64_t{2}), Arg::of(begin), Arg::of(end)},
          .outputs = {out}};
}

// x [6, 4] times a weight of [12, 4] as [2, 3, 12], of which the first `queries` and the rest are cut out.
Model projection(int64_t queries) {
  Model model;
  model.tensors = {
      {.name = "x", .shape = {6, 4}, .strides = {4, 1}, .role = Role::kBatchInput},
      {.name = "w", .shape = {12, 4}, .strides = {4, 1}, .role = Role::kParameter, .trainable = true},
      {.name = "t:0", .shape = {4, 12}, .strides = {1, 4}},
      {.name = "mm:0", .shape = {6, 12}, .strides = {12, 1}},
      {.name = "view:0", .shape = {2, 3, 12}, .strides = {36, 12, 1}},
      {.name = "q:0", .shape = {2, 3, queries}, .strides = {36, 12, 1}},
      {.name = "k:0", .shape = {2, 3, 12 - queries}, .strides = {36, 12, 1}}};
  model.ops = {
      {.name = "t", .target = "aten.t.default", .args = {at(kWeight)}, .outputs = {kTurned}},
      {.name = "mm", .target = "aten.mm.default", .args = {at(kX), at(kTurned)}, .outputs = {kProduct}},
      {.name = "view",
       .target = "aten.view.default",
       .args = {at(kProduct), Arg::list({2, 3, 12})},
       .outputs = {kWide}},
      slice("q", 0, queries, kQuery),
      slice("k", queries, 12, kKey)};
  return model;
}

Op relu(TensorId in, TensorId out) {
  return {.name = "relu", .target = "aten.relu.default", .args = {at(in)}, .outputs = {out}};
}

TEST(Packed, UnequalPartsAreFollowedToTheParameter) {
  std::vector<Packed> packed = find_packed(projection(8));
  ASSERT_EQ(packed.size(), 1u);
  EXPECT_EQ(packed[0].cuts, (std::vector<int64_t>{0, 8, 12}));
  EXPECT_EQ(packed[0].members.at(kWeight).dim, 0);
  EXPECT_EQ(packed[0].members.at(kTurned).dim, 1);
  EXPECT_EQ(packed[0].members.at(kWide).dim, 2);
}

TEST(Packed, EqualPartsAreAProductAlready) { EXPECT_TRUE(find_packed(projection(6)).empty()); }

TEST(Packed, WhatReadsTheWholeKeepsItTogether) {
  Model model = projection(8);
  model.tensors.push_back({.name = "s:0", .shape = {2, 3, 12}, .strides = {36, 12, 1}});
  model.ops.push_back({.name = "s",
                       .target = "aten._softmax.default",
                       .args = {at(kWide), Arg::of(int64_t{2}), Arg::of(int64_t{0})},
                       .outputs = {TensorId{7}}});
  EXPECT_TRUE(find_packed(model).empty());
}

TEST(Unpack, EveryPartGetsItsOwnOps) {
  Model model = projection(8);
  model.tensors.push_back({.name = "relu:0", .shape = {2, 3, 4}, .strides = {12, 4, 1}});
  model.ops.push_back(relu(kKey, TensorId{7}));
  Model apart = unpack(model);
  std::vector<std::string> names;
  for (const Op& op : apart.ops) names.push_back(op.name);
  EXPECT_EQ(names, (std::vector<std::string>{"t.part.0", "t.part.1", "mm.part.0", "mm.part.1", "view.part.0",
                                             "view.part.1", "relu"}));
  EXPECT_EQ(apart.ops[5].args[1], Arg::list({2, 3, 4}));
  EXPECT_EQ(apart[apart.ops[6].args[0].tensor].name, "view.part.1:0");
  const Tensor& keys = apart[apart.ops[1].args[0].tensor];
  EXPECT_EQ(keys.name, "w.part.1");
  EXPECT_EQ(keys.shape, (Shape{4, 4}));
  EXPECT_EQ(keys.part, (Part{.whole = kWeight, .dim = 0, .begin = 8}));
}

TEST(Unpack, TheGradientsOfSlicesNeedNoZeros) {
  Model model = projection(8);
  auto tensor = [&](const char* name, Shape shape) {
    model.tensors.push_back({.name = name, .strides = {shape[1] * shape.back(), shape.back(), 1}});
    model.tensors.back().shape = std::move(shape);
    return TensorId{static_cast<int32_t>(model.tensors.size() - 1)};
  };
  auto back = [&](const char* name, TensorId of, int64_t begin, int64_t end) {
    TensorId out = tensor(name, {2, 3, 12});
    model.ops.push_back({.name = name,
                         .target = "aten.slice_backward.default",
                         .args = {at(of), Arg::list({2, 3, 12}), Arg::of(int64_t{2}), Arg::of(begin),
                                  Arg::of(end), Arg::of(int64_t{1})},
                         .outputs = {out},
                         .backward = true});
    return out;
  };
  TensorId first = back("q.grad", kQuery, 0, 8), second = back("k.grad", kKey, 8, 12);
  TensorId both = tensor("add", {2, 3, 12}), scaled = tensor("mul", {2, 3, 12});
  model.ops.push_back({.name = "add",
                       .target = "aten.add.Tensor",
                       .args = {at(first), at(second)},
                       .outputs = {both},
                       .backward = true});
  model.ops.push_back({.name = "mul",
                       .target = "aten.mul.Tensor",
                       .args = {at(both), at(kWide)},
                       .outputs = {scaled},
                       .backward = true});
  Model apart = unpack(model);
  EXPECT_EQ(apart.ops.back().name, "mul.part.1");
  EXPECT_EQ(apart.ops[apart.ops.size() - 3].name, "view.part.1");
  EXPECT_EQ(apart.ops.back().args[0], apart.ops.back().args[1]);
}

}  // namespace
}  // namespace partita::layout
