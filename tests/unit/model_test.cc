#include <gtest/gtest.h>

#include "base/error.h"
#include "model/rewrite/retype.h"
#include "model_small.h"

namespace partita::model {
namespace {

TEST(Model, CountsElementsAndBytes) {
  EXPECT_EQ(numel({}), 1);
  EXPECT_EQ(numel({4, 0, 2}), 0);
  EXPECT_EQ(bytes_of(small_model().tensors[0]), 24);
  EXPECT_EQ(bytes_of(small_model().tensors[1]), 32);
}

TEST(Model, InputsAreFlattenedAndRepeatsKept) {
  Op op;
  op.args = {Arg::of(TensorId{3}),
             Arg{.kind = Arg::kList, .items = {Arg::of(TensorId{1}), Arg::none(), Arg::of(TensorId{3})}}};
  op.kwargs = {{"bias", Arg::of(TensorId{0})}};
  EXPECT_EQ(inputs_of(op), (std::vector{TensorId{3}, TensorId{1}, TensorId{3}, TensorId{0}}));
}

TEST(Model, FindsArgumentsByPositionAndByName) {
  Op op;
  op.args = {Arg::of(int64_t{7})};
  op.kwargs = {{"dim", Arg::of(int64_t{2})}};
  EXPECT_EQ(argument(op, 0, "self").integer, 7);
  EXPECT_EQ(argument(op, 1, "dim").integer, 2);
  EXPECT_EQ(argument(op, 2, "half").kind, Arg::kNone);
}

TEST(Model, ShowsOneLinePerOp) {
  Model model = small_model();
  model.ops[5].target = "lab.product.default";
  model.ops[5].outputs.push_back({});
  EXPECT_EQ(to_text(model),
            "model small\n"
            "%0 f32[3,2] : parameter  # fc.weight\n"
            "%1 i64[4] : batch from 0 to 7  # ids\n"
            "%2 f32[8,3] : constant  # table\n"
            "%3 i64[] : buffer  # count\n"
            "%11 f32[2] : parameter  # head.bias\n"
            "%4 f32[4,3] = aten.embedding.default(%2, %1)  # fc/embedding\n"
            "%5 f32[4,2] = aten.mm.default(%4, %0)  # fc/mm\n"
            "%6 f32[] = aten.sum.default(%5, dtype=float32)  # loss/sum\n"
            "%7 f32[4,2] = aten.full.default([4, 2], 1)  # loss/sum.grad.0\n"
            "%8 f32[3,4] = aten.t.default(%4)  # fc/mm.grad.0\n"
            "%9 f32[3,2], _ = lab.product.default(%8, %7)  # fc/mm.grad.1\n"
            "%10 i64[] = aten.add.Tensor(%3, 1)  # count/add\n"
            "loss %6\n"
            "gradient %9 of %0  # fc.weight\n"
            "buffer %3 becomes %10  # count\n");
}

TEST(Model, RetypesFloatingTensorsAndDtypeArguments) {
  Model model = retype(small_model(), DType::kFloat64);
  EXPECT_EQ(check(model), std::vector<std::string>{});
  EXPECT_EQ(model.tensors[0].dtype, DType::kFloat64);
  EXPECT_EQ(model.tensors[1].dtype, DType::kInt64);
  EXPECT_EQ(argument(model.ops[2], 9, "dtype").text, "float64");
  // aten.full names no dtype: its default would stay float32.
  EXPECT_EQ(argument(model.ops[3], 9, "dtype").text, "float64");
  EXPECT_TRUE(model.ops[6].kwargs.empty());
  EXPECT_THROW(retype(model, DType::kInt64), InputError);
}

TEST(Model, AnLstmOfOneDnnHasNoDoublePrecision) {
  Model model = small_model();
  model.ops[1].target = "aten.mkldnn_rnn_layer.default";
  EXPECT_NO_THROW(retype(model, DType::kBFloat16));
  try {
    retype(model, DType::kFloat64);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "dtype float64: op fc/mm (aten.mkldnn_rnn_layer.default) has no kernel for it; capture the "
                 "step of module.double() instead, which takes other ops");
  }
}

TEST(Model, FingerprintSeesThePlanButNotTheValues) {
  Model model = small_model();
  std::string print = fingerprint(model);
  EXPECT_EQ(print.substr(0, 6), "small#");
  EXPECT_EQ(print.size(), 6u + 16u);
  EXPECT_EQ(fingerprint(retype(model, DType::kFloat64)), print);
  Model other = model;
  other.torch = "3.0";
  other.tensors[1].high = 5;
  EXPECT_EQ(fingerprint(other), print);
  other.ops[6].args[1].integer = 2;
  EXPECT_NE(fingerprint(other), print);
  other = model;
  other.tensors[0].trainable = false;
  EXPECT_NE(fingerprint(other), print);
}

}  // namespace
}  // namespace partita::model
