// Lowered plans on thread ranks: equal to one device, and their bytes as predicted.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "lower/lower.h"
#include "model/retype.h"
#include "plan/recipe.h"
#include "program/memory.h"
#include "run/api.h"
#include "run/straight_line.h"

namespace partita {
namespace {

Model captured(const std::string& name, DType dtype) {
  std::string path = std::string(PARTITA_SOURCE_DIR) + "/tests/data/" + name + ".model.json";
  return retype(parse_model(read_file(path), path), dtype);
}

struct Case {
  const char* name;
  const char* suffix;  // of the captured model
  RecipeSpec spec;
};
const Case kCases[] = {
    {"one", "tiny", {}},
    {"dp2", "tiny", {.dp = 2}},
    {"dp3", "tiny", {.dp = 3}},
    {"tp2", "tiny", {.tp = 2}},
    {"zero3", "tiny", {.dp = 2, .zero = 3}},
    {"pp2", "tiny", {.pp = 2, .microbatches = 4}},
    {"dp2pp2", "tiny4", {.dp = 2, .pp = 2, .microbatches = 4}},
};

class Lowering : public testing::TestWithParam<std::tuple<const char*, Case>> {};
INSTANTIATE_TEST_SUITE_P(Plans, Lowering,
                         testing::Combine(testing::Values("gpt2", "llama"), testing::ValuesIn(kCases)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)) + "_" + std::get<1>(info.param).name;
                         });

TEST_P(Lowering, EqualsOneDeviceInPredictedBytes) {
  auto [name, test] = GetParam();
  Model model = captured(fmt::format("{}-{}", name, test.suffix), DType::kFloat64);
  Lowered lowered = lower(model, recipe(model, test.spec));
  LeafSizes plain = plain_leaves(model);
  Program reference = straight_line(model, test.spec.optimizer, plain);
  VerifyReport report =
      partita_run_api(kRunApiVersion)
          ->verify({lowered.model, lowered.program, leaves_of(lowered.model, lowered.atoms)},
                   {model, reference, plain}, {.run = {.steps = 2, .batch = {.ignored_labels = true}}});
  EXPECT_TRUE(report.equal) << report.worst_parameter << " " << report.worst_error << ", disagreement "
                            << report.disagreement;
  std::vector<Bytes> predicted;
  for (const RankMemory& rank : memory_of(lowered.model, lowered.program)) predicted.push_back(rank.peak);
  EXPECT_EQ(report.peak_bytes, predicted);
}

}  // namespace
}  // namespace partita
