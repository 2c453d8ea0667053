#include <gtest/gtest.h>

#include "model/rewrite/decompose.h"

namespace partita::model {
namespace {

// %0 [4, 6] -> one op -> %1 of `shape`.
Model reducing(const char* target, std::vector<Arg> more, Shape shape) {
  Model model;
  model.tensors = {{.name = "x", .shape = {4, 6}, .strides = {6, 1}, .role = Role::kBatchInput},
                   {.name = "mean:0", .shape = std::move(shape)}};
  Op op{.name = "mean", .target = target, .args = {Arg::of(TensorId{0})}, .outputs = {TensorId{1}}};
  op.args.insert(op.args.end(), more.begin(), more.end());
  model.ops = {op};
  return model;
}

std::vector<std::string> targets(const Model& model) {
  std::vector<std::string> names;
  for (const Op& op : model.ops) names.push_back(op.target);
  return names;
}

using Targets = std::vector<std::string>;

TEST(Decompose, AMeanOverTheBatchIsASumOverTheWholeSize) {
  Model model = decompose(reducing("aten.mean.default", {}, {}));
  EXPECT_EQ(targets(model), (Targets{"aten.sum.default", "aten.div.Scalar"}));
  EXPECT_EQ(model.ops[1].args[1], Arg::of(int64_t{24}));
  EXPECT_EQ(model.ops[1].outputs[0], TensorId{1});
}

TEST(Decompose, AMeanOverSomeDimensionsDividesByTheirSizes) {
  Model model = decompose(reducing("aten.mean.dim", {Arg::list({-2})}, {6}));
  EXPECT_EQ(targets(model), (Targets{"aten.sum.dim_IntList", "aten.div.Scalar"}));
  EXPECT_EQ(model.ops[1].args[1], Arg::of(int64_t{4}));
}

TEST(Decompose, AMeanInsideASampleStays) {
  EXPECT_EQ(targets(decompose(reducing("aten.mean.dim", {Arg::list({1})}, {4}))), (Targets{"aten.mean.dim"}));
}

TEST(Decompose, AMeanSquaredErrorIsSummedWithItsGradientShared) {
  Arg x = Arg::of(TensorId{0});
  Model forward = decompose(reducing("aten.mse_loss.default", {x}, {}));
  EXPECT_EQ(targets(forward), (Targets{"aten.mse_loss.default", "aten.div.Scalar"}));
  Model model = reducing("aten.mse_loss_backward.default", {x, x, Arg::of(int64_t{1})}, {4, 6});
  model.tensors.push_back({.name = "g"});
  model.ops[0].args[0] = Arg::of(TensorId{2});
  Model backward = decompose(model);
  EXPECT_EQ(targets(backward), (Targets{"aten.div.Scalar", "aten.mse_loss_backward.default"}));
  EXPECT_EQ(backward.ops[0].args[1], Arg::of(int64_t{24}));
  EXPECT_EQ(backward.ops[1].args[3], Arg::of(int64_t{2}));
}

TEST(Decompose, OtherLossesOfPairsToo) {
  Arg x = Arg::of(TensorId{0});
  for (const char* loss : {"aten.smooth_l1_loss.default", "aten.huber_loss.default",
                           "aten.soft_margin_loss.default", "aten.binary_cross_entropy.default"}) {
    Model model = decompose(reducing(loss, {x}, {}));
    EXPECT_EQ(targets(model), (Targets{loss, "aten.div.Scalar"}));
    EXPECT_EQ(model.ops[0].args.back(), Arg::of(int64_t{2})) << loss;
    EXPECT_EQ(model.ops[1].args[1], Arg::of(int64_t{24})) << loss;
  }
  Model model = reducing("aten.binary_cross_entropy_backward.default", {x, x}, {4, 6});
  model.tensors.push_back({.name = "g"});
  model.ops[0].args[0] = Arg::of(TensorId{2});
  Model backward = decompose(model);
  EXPECT_EQ(targets(backward), (Targets{"aten.div.Scalar", "aten.binary_cross_entropy_backward.default"}));
  EXPECT_EQ(backward.ops[1].args[4], Arg::of(int64_t{2}));
}

TEST(Decompose, AFillReadsNoValues) {
  Model model = decompose(reducing("aten.fill.Scalar", {Arg::of(int64_t{3})}, {4, 6}));
  EXPECT_EQ(targets(model), (Targets{"aten.full.default"}));
  EXPECT_EQ(model.ops[0].args[1], Arg::of(int64_t{3}));
  EXPECT_TRUE(inputs_of(model.ops[0]).empty());
}

// Autograd's way to the gradient of a weight that was used transposed.
TEST(Decompose, AProductTurnedTwiceIsMadeAsItIsWanted) {
  Model model;
  for (int i = 0; i < 5; ++i) model.tensors.push_back({.name = "x", .shape = {4, 4}, .strides = {4, 1}});
  auto op = [&](const char* target, std::vector<Arg> args, int32_t out) {
    model.ops.push_back(
        {.name = target, .target = target, .args = std::move(args), .outputs = {TensorId{out}}});
  };
  auto tensor = [](int32_t id) { return Arg::of(TensorId{id}); };
  op("aten.mm.default", {tensor(0), tensor(1)}, 2);
  op("aten.t.default", {tensor(2)}, 3);
  op("aten.t.default", {tensor(3)}, 4);
  Model straight = decompose(model);
  EXPECT_EQ(targets(straight), (Targets{"aten.mm.default"}));
  EXPECT_EQ(straight.ops[0].outputs[0], TensorId{4});
  model.gradients = {{TensorId{0}, TensorId{3}}};  // what is wanted stays
  EXPECT_EQ(decompose(model).ops, model.ops);
}

}  // namespace
}  // namespace partita::model
