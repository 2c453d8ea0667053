#include <gtest/gtest.h>

#include <numeric>

#include "base/error.h"
#include "base/names.h"
#include "model/build/build.h"
#include "plan/recipes/cut.h"
#include "plan/recipes/recipe.h"

namespace partita::plan {
namespace {

std::vector<int> one_site_each(int64_t count) {
  std::vector<int> sites(count);
  std::iota(sites.begin(), sites.end(), 0);
  return sites;
}

Model preset(const char* name) { return build_model(*find_preset(name)); }

int stage_of(const std::vector<Stage>& stages, const std::string& op) {
  for (size_t s = 0; s < stages.size(); ++s)
    for (const std::string& pattern : stages[s].ops)
      if (matches(pattern, op)) return static_cast<int>(s);
  return -1;
}

class Stages : public testing::TestWithParam<std::pair<const char*, int>> {};

TEST_P(Stages, FollowTheOrderOfExecution) {
  auto [name, count] = GetParam();
  Model model = preset(name);
  std::vector<Stage> stages = pipeline_stages(model, one_site_each(count), 1);
  int last = 0;
  for (OpId id : find_line(model).ops) {
    int stage = stage_of(stages, model[id].name);
    EXPECT_GE(stage, last) << model[id].name;
    last = stage;
  }
  EXPECT_EQ(last, count - 1);
}

INSTANTIATE_TEST_SUITE_P(Models, Stages,
                         testing::Values(std::pair{"gpt2-tiny", 2}, std::pair{"gpt2-small", 4},
                                         std::pair{"t5-small", 3}, std::pair{"swin-tiny", 4},
                                         std::pair{"evoformer-tiny", 2}, std::pair{"vit-base", 5},
                                         std::pair{"mixtral-tiny", 2}));

TEST(Cut, KeepsBlocksWhole) {
  std::vector<Stage> stages = pipeline_stages(preset("gpt3-13b"), one_site_each(4), 1);
  for (int layer = 0; layer < 40; ++layer) {
    int first = stage_of(stages, fmt::format("transformer.h.{}.attn.c_attn/addmm", layer));
    EXPECT_GE(first, 0) << layer;
    EXPECT_EQ(first, stage_of(stages, fmt::format("transformer.h.{}.attn.c_proj/addmm", layer)));
  }
}

TEST(Cut, BalancesWork) {
  Line line = find_line(preset("llama-2-70b"));
  std::vector<size_t> firsts = cut_line(line, 8);
  ASSERT_EQ(firsts.size(), 8u);
  Flops total = std::accumulate(line.flops.begin(), line.flops.end(), Flops{0});
  firsts.push_back(line.ops.size());
  for (size_t s = 0; s < 8; ++s) {
    Flops stage =
        std::accumulate(line.flops.begin() + firsts[s], line.flops.begin() + firsts[s + 1], Flops{0});
    EXPECT_LT(stage, 1.05 * total / 8) << s;
  }
}

// A line by hand: work 1 each, the third place is the only narrow one.
TEST(Cut, LiesWhereFewBytesCross) {
  Line line{
      .ops = std::vector<OpId>(8), .flops = std::vector<Flops>(8, 1), .crossing = {0, 9, 9, 2, 9, 9, 9, 9}};
  EXPECT_EQ(cut_line(line, 2), (std::vector<size_t>{0, 3}));
}

// A verb that is given a plan and a preset builds the step that the plan is for, also that of one sample.
TEST(Recipe, SaysTheBatchItIsFor) {
  for (int64_t batch : {1, 4}) {
    Model model =
        build_model(R"({"model_type": "gpt2", "n_layer": 1, "n_embd": 16, "n_head": 2, "vocab_size": 32})",
                    "config.json", {.batch = batch, .seq = 8});
    EXPECT_EQ(recipe(model, {}).batch, batch);
  }
}

}  // namespace
}  // namespace partita::plan
