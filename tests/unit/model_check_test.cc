#include <gtest/gtest.h>

#include "model/axes.h"
#include "model/seed.h"
#include "model_small.h"

namespace partita::model {
namespace {

/// What `check` says about `small_model` after `change`.
std::vector<std::string> complaints(void (*change)(Model&)) {
  Model model = small_model();
  change(model);
  return check(model);
}

using Sentences = std::vector<std::string>;

TEST(ModelCheck, AcceptsASoundModel) { EXPECT_EQ(check(small_model()), Sentences{}); }

TEST(ModelCheck, NamesIdsOutOfRange) {
  EXPECT_EQ(complaints([](Model& m) { m.ops[1].args[0].tensor.value = 40; }),
            Sentences{"op fc/mm names tensor %40, which does not exist"});
  EXPECT_EQ(complaints([](Model& m) { m.loss = {}; }),
            Sentences{"the loss names tensor %-1, which does not exist"});
  EXPECT_EQ(complaints([](Model& m) { m.gradients[0].second.value = 12; }),
            Sentences{"a gradient or buffer names tensor %12, which does not exist"});
}

TEST(ModelCheck, NamesAreUnique) {
  EXPECT_EQ(complaints([](Model& m) { m.tensors[5].name = "ids"; }), Sentences{"two tensors are named ids"});
  EXPECT_EQ(complaints([](Model& m) { m.ops[5].name = "fc/mm"; }), Sentences{"two ops are named fc/mm"});
}

TEST(ModelCheck, CallsAreThoseOfTheOp) {
  EXPECT_EQ(complaints([](Model& m) {
              m.ops[1].kwargs.push_back({"colour", Arg::of(int64_t{1})});
            }),
            Sentences{"op fc/mm (aten.mm.default): has an argument \"colour\"; it takes self, mat2"});
  EXPECT_EQ(complaints([](Model& m) {
              m.ops[1].kwargs.push_back({"mat2", m.ops[1].args[1]});
            }),
            Sentences{"op fc/mm (aten.mm.default): is given its argument \"mat2\" twice"});
  EXPECT_EQ(complaints([](Model& m) { m.ops[1].args.push_back(m.ops[1].args[1]); }),
            Sentences{"op fc/mm (aten.mm.default): has 3 arguments, it takes 2: self, mat2"});
  EXPECT_EQ(complaints([](Model& m) { m.ops[1].outputs.push_back({}); }),
            Sentences{"op fc/mm (aten.mm.default): makes 1 tensors, but has 2 outputs"});
}

// %4 has 12 elements; ranks keep it dense.
TEST(ModelCheck, PlacesInMemoryAreThoseOfTheTensor) {
  auto strided = [](Model& m, std::vector<int64_t> steps) {
    m.ops[4].target = "aten.as_strided.default";
    m.ops[4].args.push_back(Arg::list({3, 4}));
    m.ops[4].args.push_back(Arg::list(steps));
  };
  Model model = small_model();
  strided(model, {1, 3});
  EXPECT_EQ(check(model), Sentences{});
  model = small_model();
  strided(model, {1, 4});
  EXPECT_EQ(check(model),
            Sentences{"op fc/mm.grad.0 (aten.as_strided.default): reads place 14 of fc/embedding:0, "
                      "which has 12"});
  model = small_model();
  model.tensors[4].strides = {4, 1};
  strided(model, {1, 3});
  EXPECT_EQ(check(model), Sentences{"op fc/mm.grad.0 (aten.as_strided.default): names places in memory, but "
                                    "fc/embedding:0 is a part of what lies there"});
}

TEST(ModelCheck, InputsHaveNoMoreDimensionsThanTheOpTakes) {
  EXPECT_EQ(
      complaints([](Model& m) { m.tensors[2].shape.push_back(3), m.tensors[2].strides.push_back(1); })[0],
      "op fc/embedding (aten.embedding.default): dimension 2 of input 0 is 3, which this op does not take");
}

TEST(ModelCheck, WhatALossCountsIsOneNumber) {
  EXPECT_EQ(
      complaints([](Model& m) {
        m.ops[2].target = "aten.nll_loss_forward.default";
        m.ops[2].args = {m.ops[2].args[0], Arg::of(TensorId{1}), Arg::none(), Arg::of(int64_t{1}),
                         Arg::of(int64_t{-100})};
        m.ops[2].kwargs.clear();
        m.tensors.push_back({.name = "count:0", .shape = {3}, .strides = {1}});
        m.ops[2].outputs.push_back(TensorId{12});
      }),
      Sentences{"op loss/sum (aten.nll_loss_forward.default): the total weight has 1 dimensions, it is one "
                "number"});
}

TEST(ModelCheck, ForwardDoesNotReadWhatBackwardMakes) {
  EXPECT_EQ(complaints([](Model& m) { m.ops[5].backward = false; })[0],
            "op fc/mm.grad.1 reads fc/mm.grad.0:0, which backward makes, but is not marked backward itself");
}

TEST(ModelCheck, GradientsHaveTheDtypeOfTheirParameter) {
  EXPECT_EQ(complaints([](Model& m) { m.tensors[0].dtype = DType::kBool; })[0],
            "fc.weight is bool and its gradient float32; both need to be the same floating dtype");
}

TEST(ModelCheck, TensorsAreMadeOnceBeforeTheyAreRead) {
  EXPECT_EQ(complaints([](Model& m) { std::swap(m.ops[0], m.ops[1]); })[0],
            "op fc/mm reads fc/embedding:0 before any op makes it");
  EXPECT_EQ(complaints([](Model& m) { m.ops[4].outputs[0] = TensorId{0}; })[0],
            "op fc/mm.grad.0 makes fc.weight, which is an input of the step");
  EXPECT_EQ(complaints([](Model& m) { m.ops[4].outputs[0] = TensorId{7}; })[0],
            "op fc/mm.grad.0 makes loss/sum.grad.0:0, which another op made already");
  EXPECT_EQ(complaints([](Model& m) { m.ops.pop_back(); }), Sentences{"no op makes tensor count/add:0"});
}

TEST(ModelCheck, TensorsAreSound) {
  EXPECT_EQ(complaints([](Model& m) { m.tensors[4].strides = {1}; }),
            Sentences{"tensor fc/embedding:0 has 2 dimensions but 1 strides"});
  EXPECT_EQ(complaints([](Model& m) { m.tensors[1].high = 0; }),
            Sentences{"batch input ids holds whole numbers but has no range to draw them from"});
}

TEST(ModelCheck, LossIsAFloatingScalar) {
  EXPECT_EQ(complaints([](Model& m) { m.tensors[6].shape = m.tensors[6].strides = {1}; }),
            Sentences{"the loss loss/sum:0 is float32[1], needs to be one floating number"});
}

TEST(ModelCheck, GradientsMatchParameters) {
  EXPECT_EQ(complaints([](Model& m) { m.gradients.clear(); }),
            Sentences{"the loss uses parameter fc.weight, which has no gradient"});
  EXPECT_EQ(complaints([](Model& m) {
              m.tensors[9].shape = {2, 3};
            }),
            Sentences{"the gradient of fc.weight has shape [2,3], needs [3,2]"});
  EXPECT_EQ(complaints([](Model& m) { m.gradients.push_back(m.gradients[0]); }),
            Sentences{"parameter fc.weight has two gradients"});
  EXPECT_EQ(complaints([](Model& m) { m.tensors[0].trainable = false; }),
            Sentences{"fc.weight has a gradient but is not a trainable parameter"});
  EXPECT_EQ(complaints([](Model& m) {
              m.tensors[11].shape = {3, 2};
              m.tensors[11].strides = {2, 1};
              m.gradients.push_back({TensorId{11}, TensorId{9}});
            }),
            Sentences{"parameter head.bias has a gradient but the loss does not use it"});
}

TEST(ModelCheck, BackwardOpsDoNotLeadToTheLoss) {
  EXPECT_EQ(complaints([](Model& m) { m.ops[1].backward = true; })[0],
            "op fc/mm is marked backward but the loss needs it");
}

TEST(ModelCheck, BuffersMatchTheirNewValues) {
  EXPECT_EQ(complaints([](Model& m) { m.buffers[0].first = TensorId{2}; })[0],
            "table gets a new value but is not a buffer");
  EXPECT_EQ(complaints([](Model& m) { m.tensors[10].dtype = DType::kInt32; }),
            Sentences{"the new value of buffer count has another shape or dtype"});
  EXPECT_EQ(complaints([](Model& m) { m.buffers.push_back(m.buffers[0]); }),
            Sentences{"buffer count gets two new values"});
}

/// An op of one's own with these letters.
struct Lettered {
  Op op;
  OpView view;
  Lettered(const char* axes, std::vector<Shape> in, std::vector<Shape> out)
      : op{.name = "x/op", .target = "mylib.op.default", .axes = axes} {
    view.op = &op;
    for (Shape& shape : in) view.in.push_back(std::move(shape));
    for (Shape& shape : out) view.out.push_back(std::move(shape));
    view.has_out.resize(out.size(), true);
  }
};

std::string letters_of(const char* axes, std::vector<Shape> in, std::vector<Shape> out) {
  return check_axes(Lettered(axes, std::move(in), std::move(out)).view);
}

TEST(Axes, SayWhatDoesNotFit) {
  EXPECT_EQ(letters_of("m k, k n -> m n", {{2, 3}, {3, 4}}, {{2, 4}}), "");
  EXPECT_EQ(letters_of("-> ", {}, {{}}), "has letters for 1 inputs, the op has 0");
  EXPECT_EQ(letters_of("m k", {{2, 3}}, {{2}}), "has no ->");
  EXPECT_EQ(letters_of("m k -> m", {{2, 3}, {3}}, {{2}}), "has letters for 1 inputs, the op has 2");
  EXPECT_EQ(letters_of("m k -> m, k", {{2, 3}}, {{2}}), "has letters for 2 results, the op has 1");
  EXPECT_EQ(letters_of("m k -> m", {{2, 3, 4}}, {{2}}), "has 2 letters for input 0, which has 3 dimensions");
  EXPECT_EQ(letters_of("m ! -> m", {{2, 3}}, {{2}}), "has a ! without a letter");
  EXPECT_EQ(letters_of("m k, k n -> m n", {{2, 3}, {5, 4}}, {{2, 4}}),
            "uses k for dimensions of size 3 and 5");
}

TEST(Axes, OfAProductTieRowsAndColumnsAndSumTheRest) {
  Lettered mm("m k, k n -> m n", {{2, 3}, {3, 4}}, {{2, 4}});
  Relation relation;
  relate_axes(mm.view, relation);
  std::vector<std::pair<DimProduct, DimProduct>> equal = {{{input_dim(0, 1)}, {input_dim(1, 0)}},
                                                          {{output_dim(0, 0)}, {input_dim(0, 0)}},
                                                          {{output_dim(0, 1)}, {input_dim(1, 1)}}};
  EXPECT_EQ(relation.equal, equal);
  EXPECT_EQ(relation.reduced, std::vector<DimRef>{input_dim(0, 1)});
  EXPECT_TRUE(relation.frozen.empty());
}

TEST(Axes, SumWhatOneOfTheResultsLacks) {
  Lettered gradient("b h, b h, h -> b h, h", {{2, 3}, {2, 3}, {3}}, {{2, 3}, {3}});
  Relation relation;
  relate_axes(gradient.view, relation);
  EXPECT_EQ(relation.reduced, std::vector<DimRef>{output_dim(0, 0)});
  gradient.view.has_out.back() = false;  // nobody asked for it
  Relation without;
  relate_axes(gradient.view, without);
  EXPECT_TRUE(without.reduced.empty());
}

TEST(Axes, KeepMarkedAndMadeDimensionsWhole) {
  Lettered norm("b !h, !h -> b !h e", {{2, 3}, {3}}, {{2, 3, 5}});
  Relation relation;
  relate_axes(norm.view, relation);
  EXPECT_TRUE(relation.reduced.empty());
  for (DimRef whole : {input_dim(0, 1), input_dim(1, 0), output_dim(0, 1)})
    EXPECT_EQ(relation.frozen.at(whole), "marked with ! in the row given for this op");
  EXPECT_EQ(relation.frozen.at(output_dim(0, 2)), "no input has this dimension");
  EXPECT_FALSE(relation.frozen.contains(output_dim(0, 0)));
}

TEST(Axes, ThatDoNotFitAreAFaultOfTheModel) {
  EXPECT_EQ(
      complaints([](Model& m) { m.ops[1].axes = "m k, k n -> m k"; }),
      Sentences{"op fc/mm (aten.mm.default): its row \"m k, k n -> m k\" uses k for dimensions of size 2 "
                "and 3"});
}

TEST(CheckModel, OnesLikeANumberAreNoGradientOfTheLoss) {
  Model model;
  model.tensors = {{.name = "loss"}, {.name = "ones"}};
  model.loss = TensorId{0};
  Arg number{.kind = Arg::kFloat, .number = 1.5};
  model.ops = {{"a/ones_like", "aten.ones_like.default", {number}, {}, {TensorId{1}}, true}};
  EXPECT_FALSE(may_make_seed(model, model.ops[0]));
}

}  // namespace
}  // namespace partita::model
