#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/error.h"
#include "base/json.h"
#include "model_small.h"

namespace partita::model {
namespace {

/// The message of the InputError that reading `text` ends with.
std::string refusal(const std::string& text) {
  try {
    parse_model(text, "m");
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

/// `small_model` as JSON with the value at `pointer` replaced.
std::string changed(const char* pointer, const Json& value) {
  Json json = Json::parse(to_json(small_model()));
  json[Json::json_pointer(pointer)] = value;
  return json.dump();
}

TEST(ModelJson, WritesOneLinePerTensorAndOp) {
  Model model = small_model();
  model.ops[5].target = "lab.product.default";
  model.ops[5].outputs.push_back({});
  std::string text = to_json(model);
  EXPECT_EQ(
      text.substr(0, text.find("},\n  {\"name\": \"ids\"")),
      "{\"format\": \"partita.model\", \"version\": 1, \"name\": \"small\", \"torch\": \"2.13.0\",\n"
      " \"tensors\": [\n"
      "  {\"name\": \"fc.weight\", \"shape\": [3, 2], \"stride\": [2, 1], \"dtype\": \"float32\", \"role\": "
      "\"parameter\", \"trainable\": true");
  EXPECT_NE(
      text.find(
          "\n  {\"name\": \"fc/mm.grad.1\", \"target\": \"lab.product.default\", \"args\": [\"%8\", \"%7\"], "
          "\"out\": [9, null], \"backward\": true},\n"),
      text.npos);
  EXPECT_TRUE(text.ends_with(" ],\n \"loss\": 6, \"gradients\": [[0, 9]], \"buffers\": [[3, 10]]}\n"));
}

TEST(ModelJson, ReadsBackWhatItWrote) {
  Model model = small_model();
  EXPECT_EQ(parse_model(to_json(model), "m"), model);
}

TEST(ModelJson, KeepsEveryKindOfArgument) {
  Model model = small_model();
  auto text = [](Arg::Kind kind, const char* word) { return Arg{.kind = kind, .text = word}; };
  Arg nested{.kind = Arg::kList, .items = {Arg::of(TensorId{4}), Arg::none(), Arg::list({})}};
  model.ops[1].target = "lab.product.default";
  model.ops[1].kwargs = {{"none", Arg::none()},
                         {"whole", Arg::of(INT64_MIN)},
                         {"float", Arg{.kind = Arg::kFloat, .number = 2.0}},
                         {"tiny", Arg{.kind = Arg::kFloat, .number = 0.1 + 0.2}},
                         {"inf", Arg{.kind = Arg::kFloat, .number = -HUGE_VAL}},
                         {"yes", Arg{.kind = Arg::kBool, .integer = 1}},
                         {"text", text(Arg::kText, "a:\"b\"%3")},
                         {"empty", text(Arg::kText, "")},
                         {"dtype", text(Arg::kDType, "bfloat16")},
                         {"device", text(Arg::kDevice, "cpu")},
                         {"layout", text(Arg::kLayout, "strided")},
                         {"format", text(Arg::kMemoryFormat, "channels_last")},
                         {"list", nested}};
  EXPECT_EQ(parse_model(to_json(model), "m"), model);
}

TEST(ModelJson, RefusesWithThePathToTheMistake) {
  EXPECT_EQ(refusal(changed("/tensors/1/shape/0", -4)),
            "m: tensors[1].shape[0]: is -4, needs to be from 0 to 281474976710656");
  EXPECT_EQ(refusal(changed("/tensors/0/shape", Json::array({1L << 40, 1L << 40}))),
            "m: tensors[0].shape: has more elements than any machine can hold");
  EXPECT_EQ(refusal(changed("/tensors/0/dtype", "float23")),
            "m: tensors[0].dtype: unknown dtype \"float23\"; there are float64, float32, bfloat16, float16, "
            "int64, int32, int16, int8, uint8, bool, complex64, complex128; did you mean 'float32'?");
  EXPECT_EQ(refusal(changed("/tensors/0/role", "paramter")),
            "m: tensors[0].role: unknown role \"paramter\"; did you mean 'parameter'?");
  EXPECT_EQ(refusal(changed("/tensors/2/trainable", true)),
            "m: tensors[2].trainable: only a parameter can be trainable");
  EXPECT_EQ(refusal(changed("/tensors/1/range", Json::array({3, 3}))),
            "m: tensors[1].range: [3, 3) is empty; low must be below high");
  EXPECT_EQ(refusal(changed("/ops/1/args/0", "%12")),
            "m: ops[1].args[0]: \"%12\" is not a tensor of this file; it has 12, counted from 0");
  EXPECT_EQ(refusal(changed("/ops/1/args/0", "%99999999999")),
            "m: ops[1].args[0]: \"%99999999999\" is not a tensor of this file; it has 12, counted from 0");
  EXPECT_EQ(refusal(changed("/ops/1/args/0", "tanh")),
            "m: ops[1].args[0]: \"tanh\" needs its kind in front, as in \"str:tanh\"");
  EXPECT_EQ(refusal(changed("/ops/1/args/0", "dtyp:float32")),
            "m: ops[1].args[0]: \"dtyp:float32\" needs its kind in front, as in \"str:tanh\"; did you mean "
            "'dtype'?");
  EXPECT_EQ(refusal(changed("/ops/1/out/0", 12)), "m: ops[1].out[0]: is 12, needs to be from 0 to 11");
  EXPECT_EQ(refusal(changed("/ops/1/inputs", Json::array())), "m: ops[1]: unknown key \"inputs\"");
  EXPECT_EQ(refusal(changed("/loss", "x")), "m: loss: needs to be a whole number");
  EXPECT_EQ(refusal(changed("/gradients/0", Json::array({1}))),
            "m: gradients[0]: needs to be a pair of tensor ids");
  EXPECT_EQ(refusal(changed("/version", 2)),
            "m: version: is 2, this partita reads version 1; capture the model again");
  EXPECT_EQ(refusal(changed("/format", "partita.plan")),
            "m: format: is \"partita.plan\", needs to be \"partita.model\"");
}

TEST(ModelJson, EndsWithTheChecker) {
  EXPECT_EQ(
      refusal(changed("/gradients", Json::array())),
      "m: tensors[0]: the loss uses parameter fc.weight, which has no gradient; capture the model again");
}

// Every prefix of a file must end in an InputError: never in another exception, never in a model.
TEST(ModelJson, RefusesEveryCutFile) {
  std::string text = to_json(small_model());
  for (size_t length = 0; length + 2 < text.size(); ++length)
    EXPECT_NE(refusal(text.substr(0, length)), "accepted");
}

// A damaged file is either refused with an InputError or still a sound model; nothing else may escape.
TEST(ModelJson, SurvivesRandomDamage) {
  std::string whole = to_json(small_model());
  for (unsigned seed = 0; seed < 3000; ++seed) {
    std::mt19937 random(seed);
    std::string text = whole;
    for (unsigned change = 0; change <= seed % 3; ++change) {
      size_t at = random() % text.size();
      constexpr char kBytes[] = "0129-%[]{},:\"\\ntfe.\xff";
      char byte = kBytes[random() % (sizeof(kBytes) - 1)];
      if (random() % 3 == 0)
        text.erase(at, 1);
      else if (random() % 2)
        text[at] = byte;
      else
        text.insert(at, 1, byte);
    }
    try {
      Model model = parse_model(text, "m");
      EXPECT_EQ(check(model), std::vector<std::string>{}) << "seed " << seed;
    } catch (const InputError&) {
    } catch (const std::exception& error) {
      ADD_FAILURE() << "seed " << seed << ": " << error.what();
    }
  }
}

TEST(ModelJson, RefusesNumbersThatDoNotFitADouble) {
  std::string text = to_json(small_model());
  text.replace(text.find("1.0]"), 3, "1e999");
  EXPECT_NE(refusal(text).find("1e999"), std::string::npos) << refusal(text);
}

}  // namespace
}  // namespace partita::model
