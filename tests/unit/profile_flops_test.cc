#include <gtest/gtest.h>

#include "cluster/library.h"
#include "model/build/build.h"
#include "model_small.h"
#include "profile/model_flops.h"
#include "profile/step.h"

namespace partita::profile {
namespace {

/// What is known of a Transformer from its paper.
struct Transformer {
  const char* preset;
  double in_matmuls;  // parameters, the head counted even where it is tied
  double layers, width;
  int64_t batch, tokens;
};

// 6 N B S + 6 L B S S h: a product is 2 flops, backward has two for every one of forward; of the scores and
// of what they weigh, 4 B S S h forward and twice that backward, a causal mask leaves half.
double by_formula(const Transformer& t) {
  double samples = static_cast<double>(t.batch), tokens = static_cast<double>(t.tokens);
  return samples * tokens * (6 * t.in_matmuls + 6 * t.layers * tokens * t.width);
}

double counted(const Transformer& t) {
  return model_flops(build_model(*find_preset(t.preset), {t.batch, t.tokens}));
}

TEST(ModelFlops, AreThoseOfTheClosedFormula) {
  for (const Transformer& t : {
           Transformer{"llama-3-8b", 8.03e9 - 128256.0 * 4096, 32, 4096, 2, 8192},
           Transformer{"llama-3-8b", 8.03e9 - 128256.0 * 4096, 32, 4096, 1, 2048},
           Transformer{"gpt2-small", 124.4e6 - 1024.0 * 768, 12, 768, 4, 1024},
           Transformer{"gpt2-small", 124.4e6 - 1024.0 * 768, 12, 768, 8, 128},
       })
    EXPECT_NEAR(counted(t) / by_formula(t), 1, 0.01) << t.preset << " of " << t.tokens << " tokens";
}

TEST(ModelFlops, AreLessThanTheKernelsCompute) {
  Model model = build_model(*find_preset("gpt2-tiny"), {});
  ModuleCost total = profile_step(model, read_cluster("A100-80GB"), 1).total;
  EXPECT_LT(model_flops(model), total.forward + total.backward);
}

TEST(ModelFlops, WithoutAttentionAreThoseOfTheProfile) {
  ModuleCost total = profile_step(small_model(), read_cluster("A100-80GB"), 1).total;
  EXPECT_EQ(model_flops(small_model()), total.forward + total.backward);
}

TEST(Utilisation, IsAgainstThePeakOfTheDtypeOfAllDevices) {
  Cluster cluster = read_cluster("8xH100-80GB");
  Utilisation bf16 = utilisation(8 * 400e12, 1, cluster, 8, DType::kBFloat16);
  EXPECT_DOUBLE_EQ(bf16.tflops_per_device, 400);
  EXPECT_DOUBLE_EQ(bf16.mfu, 400.0 / 989);
  EXPECT_DOUBLE_EQ(utilisation(8 * 33.5e12, 1, cluster, 8, DType::kFloat32).mfu, 0.5);
}

// The nodes of another device count with their own peak.
TEST(Utilisation, KnowsEveryDevice) {
  Cluster cluster = read_cluster("2x8xH100-80GB");
  cluster.others = {{1, read_cluster("8xA100-80GB").device}};
  EXPECT_DOUBLE_EQ(utilisation(8e12 * (989 + 312), 1, cluster, 16, DType::kBFloat16).mfu, 1);
  EXPECT_DOUBLE_EQ(utilisation(8e12 * 989, 1, cluster, 8, DType::kBFloat16).mfu, 1);
}

}  // namespace
}  // namespace partita::profile
