// A built step is the captured one of the same config: every op, argument, size, stride and name.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/json.h"
#include "model/build/build.h"

namespace partita::model {
namespace {

Model captured(const std::string& name) {
  std::string path = fmt::format("{}/tests/data/{}.model.json", PARTITA_SOURCE_DIR, name);
  Model model = parse_model(read_file(path), path);
  model.torch.clear();
  return model;
}

void expect_equal(const Model& built, const Model& wanted) {
  for (size_t i = 0; i < std::min(built.ops.size(), wanted.ops.size()); ++i)
    ASSERT_EQ(built.ops[i], wanted.ops[i])
        << i << ": " << built.ops[i].name << " against " << wanted.ops[i].name;
  for (size_t i = 0; i < std::min(built.tensors.size(), wanted.tensors.size()); ++i)
    ASSERT_EQ(built.tensors[i], wanted.tensors[i])
        << built.tensors[i].name << " against " << wanted.tensors[i].name;
  EXPECT_EQ(to_json(built), to_json(wanted));
}

constexpr const char* kGpt2 =
    R"({"model_type": "gpt2", "n_layer": %, "n_embd": 64, "n_head": 4, "vocab_size": 96,
                                  "n_positions": 16})";
constexpr const char* kLlama = R"({"model_type": "llama", "num_hidden_layers": %, "hidden_size": 64,
                                   "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 96,
                                   "vocab_size": 96})";

struct Case {
  const char* file;
  const char* config;
  const char* layers;
  StepSize size;
};

class Captured : public testing::TestWithParam<Case> {};

TEST_P(Captured, EqualsTheBuiltOne) {
  std::string config = GetParam().config;
  config.replace(config.find('%'), 1, GetParam().layers);
  Model built = build_model(config, "config", GetParam().size);
  built.name = GetParam().file;
  expect_equal(built, captured(GetParam().file));
}

INSTANTIATE_TEST_SUITE_P(Files, Captured,
                         testing::Values(Case{"gpt2-tiny", kGpt2, "2", {4, 16}},
                                         Case{"gpt2-tiny4", kGpt2, "4", {8, 16}},
                                         Case{"llama-tiny", kLlama, "2", {4, 16}},
                                         Case{"llama-tiny4", kLlama, "4", {8, 16}}));

}  // namespace
}  // namespace partita::model
