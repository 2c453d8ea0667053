#include <gtest/gtest.h>

#include "model/rewrite/strided_view.h"

namespace partita::model {
namespace {

// What global average pooling leaves: %0 [4,16,1,1] dense, seen or written by another geometry.
struct Pooled {
  Model model;
  Op op;
};

Pooled pooled(const char* target, std::vector<Arg> geometry) {
  Model model;
  auto tensor = [&](const char* name, Shape shape, Shape strides) {
    model.tensors.push_back({.name = name, .shape = std::move(shape), .strides = std::move(strides)});
    return TensorId{static_cast<int32_t>(model.tensors.size()) - 1};
  };
  TensorId whole = tensor("whole", {4, 16, 1, 1}, {16, 1, 1, 1});
  TensorId part = tensor("part", {4, 16}, {16, 1});
  TensorId out = tensor("out", {4, 16}, {16, 1});
  Op op{.name = "pool", .target = target, .args = {Arg::of(whole)}, .outputs = {out}};
  if (op.target == "aten.as_strided_scatter.default") op.args.push_back(Arg::of(part));
  op.args.insert(op.args.end(), geometry.begin(), geometry.end());
  return {model, op};
}

TEST(AsView, TakesAnyStrideOfADimensionOfOne) {
  auto [model, op] = pooled("aten.as_strided.default", {Arg::list({4, 1, 16}), Arg::list({16, 99, 1})});
  auto view = as_view(model, op);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->target, "aten.view.default");
  EXPECT_EQ(view->args[1], Arg::list({4, 16}));
}

TEST(AsView, RefusesOtherGeometries) {
  for (auto [size, stride, offset] : std::vector<std::tuple<Shape, Shape, int64_t>>{
           {{16, 4}, {1, 16}, 0}, {{4, 8}, {16, 1}, 0}, {{4, 16}, {16, 1}, 1}, {{4, 16}, {0, 1}, 0}}) {
    auto [model, op] =
        pooled("aten.as_strided.default", {Arg::list(size), Arg::list(stride), Arg::of(offset)});
    EXPECT_FALSE(as_view(model, op)) << size[0] << " " << size[1] << " from " << offset;
  }
}

TEST(AsView, ScatterOverEverythingIsWhatItWrites) {
  auto [model, op] = pooled("aten.as_strided_scatter.default",
                            {Arg::list({4, 16}), Arg::list({16, 1}), Arg::of(int64_t{0})});
  auto view = as_view(model, op);
  ASSERT_TRUE(view);
  EXPECT_EQ(view->args[0], Arg::of(TensorId{1}));
}

}  // namespace
}  // namespace partita::model
