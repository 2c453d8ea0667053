#include <gtest/gtest.h>

#include "base/json.h"
#include "cluster/library.h"
#include "model_small.h"
#include "profile/step.h"

namespace partita {
namespace {

Cluster device() { return read_cluster("A100-80GB"); }

// There before the step: 24 + 32 + 96 + 8 + 8 = 168 bytes. At the peak the embedding (48, seen through `t`),
// the loss (4), the ones (32) and the gradient being made (24) are alive as well; the product (32) died with
// the loss.
TEST(ProfileStep, PeakFollowsBirthAndDeathOfStorages) {
  StepProfile profile = profile_step(small_model(), device(), 1);
  EXPECT_EQ(profile.peak_bytes, 168 + 48 + 4 + 32 + 24);
  EXPECT_EQ(profile.peak_op, "fc/mm.grad.1");
}

TEST(ProfileStep, SavedIsWhatBackwardUsesOfForward) {
  EXPECT_EQ(profile_step(small_model(), device(), 1).total.saved_bytes, 48);
}

// A new buffer value made before the loss stays until the end, but no gradient uses it.
TEST(ProfileStep, NewBufferValuesAreNotSavedForBackward) {
  Model model = small_model();
  std::rotate(model.ops.begin(), model.ops.end() - 1, model.ops.end());
  ASSERT_EQ(check(model), std::vector<std::string>{});
  StepProfile profile = profile_step(model, device(), 1);
  EXPECT_EQ(profile.total.saved_bytes, 48);
  EXPECT_EQ(profile.peak_bytes, 168 + 8 + 48 + 4 + 32 + 24);
}

TEST(ProfileStep, ModulesAddUp) {
  StepProfile profile = profile_step(small_model(), device(), 1);
  std::vector<std::string> names;
  for (const ModuleCost& module : profile.modules) names.push_back(module.name);
  EXPECT_EQ(names, (std::vector<std::string>{"fc", "loss", "count", "head"}));
  EXPECT_EQ(profile.modules[0].params, 6);
  EXPECT_EQ(profile.modules[3].param_bytes, 8);
  EXPECT_EQ(profile.total.params, 8);
  EXPECT_EQ(profile.total.ops, 7);
  EXPECT_EQ(profile.modules[0].backward, 2 * 3 * 4 * 2);
}

TEST(ProfileStep, DepthCutsModulePaths) {
  std::string file = PARTITA_SOURCE_DIR "/tests/data/gpt2-tiny.model.json";
  Model model = parse_model(read_file(file), file);
  StepProfile whole = profile_step(model, device(), 0), fine = profile_step(model, device(), 100);
  ASSERT_EQ(whole.modules.size(), 1u);
  EXPECT_EQ(whole.modules[0].name, "");
  EXPECT_GT(fine.modules.size(), 20u);
  EXPECT_EQ(whole.total.params, fine.total.params);
  EXPECT_EQ(whole.total.saved_bytes, fine.total.saved_bytes);
  EXPECT_EQ(whole.peak_bytes, fine.peak_bytes);
}

}  // namespace
}  // namespace partita
