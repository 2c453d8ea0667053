#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
#include "model/build/build.h"
#include "model/build/gradients.h"
#include "model/row.h"

namespace partita::model {
namespace {

int64_t parameters_of(const Model& model) {
  int64_t count = 0;
  for (const Tensor& tensor : model.tensors)
    if (tensor.role == Role::kParameter) count += numel(tensor.shape);
  return count;
}

TEST(Presets, AreSoundModels) {
  for (const Preset& preset : presets()) {
    Model model = build_model(preset);
    EXPECT_EQ(check(model), std::vector<std::string>{}) << preset.name;
    EXPECT_EQ(model.name, preset.name);
  }
}

TEST(Presets, HaveTheParametersTheirAuthorsCount) {
  // (preset, parameters as PyTorch counts them).
  const std::pair<const char*, int64_t> known[] = {
      {"gpt2-small", 124439808},
      {"gpt2-medium", 354823168},
      {"gpt2-large", 774030080},
      {"gpt2-xl", 1557611200},
      {"llama-2-7b", 6738415616},
      {"llama-2-13b", 13015864320},
      {"llama-2-70b", 68976648192},
      {"llama-3-8b", 8030261248},
      {"llama-3-70b", 70553706496},
      {"mistral-7b", 7241732096},
      {"llama-3.1-405b", 405853388800},
      {"llama-3.2-1b", 1235814400},
      {"llama-3.2-3b", 3212749824},
      {"t5-small", 60506624},
      {"t5-base", 222903552},
      {"t5-large", 737668096},
      {"t5-3b", 2851598336},
      {"vit-base", 86567656},
      {"vit-large", 304326632},
      {"bert-base", 109514298},
      {"bert-large", 335174458},
      {"mixtral-8x7b", 46702792704},
      {"swin-tiny", 28288354},
  };
  for (const auto& [name, parameters] : known)
    EXPECT_EQ(parameters_of(build_model(*find_preset(name))), parameters) << name;
}

TEST(Presets, AreNamedOnce) {
  std::vector<std::string> names = preset_names();
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
  EXPECT_EQ(find_preset("gpt2-tiny")->name, "gpt2-tiny");
  EXPECT_EQ(find_preset("gpt2-tyni"), nullptr);
}

TEST(Presets, TakeAnyBatchAndSequence) {
  Model model = build_model(*find_preset("llama-tiny"), {3, 7});
  EXPECT_EQ(check(model), std::vector<std::string>{});
  for (const Tensor& tensor : model.tensors) {
    if (tensor.role == Role::kBatchInput) {
      EXPECT_EQ(tensor.shape, (Shape{3, 7}));
    }
  }
}

TEST(Presets, AreTheSameEveryTime) {
  for (const char* name : {"gpt2-tiny", "llama-tiny"})
    EXPECT_EQ(to_json(build_model(*find_preset(name))), to_json(build_model(*find_preset(name))));
}

TEST(Presets, SurviveTheirFile) {
  Model model = build_model(*find_preset("llama-tiny"));
  EXPECT_EQ(parse_model(to_json(model), "file"), model);
}

TEST(Gradients, HaveOneRowAnOp) {
  std::set<std::string_view> seen;
  for (const build::GradientRow& row : build::gradient_rows())
    EXPECT_TRUE(seen.insert(row.target).second) << row.target;
}

// Gradients are written while the list of tensors grows: at some number of tensors it moves in between.
TEST(Config, BuildsStepsOfAnyNumberOfTensors) {
  for (int layers = 1; layers <= 12; ++layers)
    for (const char* family : {"llama", "gpt2", "bert", "t5"}) {
      std::string count =
          fmt::format(R"("num_hidden_layers": {0}, "n_layer": {0}, "num_layers": {0})", layers);
      std::string config = fmt::format(R"({{"model_type": "{}", {}}})", family, count);
      EXPECT_EQ(check(build_model(config, "config", {2, 8})), std::vector<std::string>{}) << config;
    }
}

TEST(Config, RefusesWhatItCannotBuild) {
  EXPECT_THROW(build_model(R"({"model_type": "gptj"})", "config"), InputError);
  EXPECT_THROW(build_model(R"({"model_type": "gpt2", "n_layer": 0})", "config"), InputError);
  EXPECT_THROW(build_model(R"({"model_type": "gpt2", "n_embd": 9223372036854775807})", "config"), InputError);
  EXPECT_THROW(build_model(R"({"model_type": "gpt2"})", "config", {int64_t{1} << 40, 1024}), InputError);
}

}  // namespace
}  // namespace partita::model
