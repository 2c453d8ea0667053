#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/file.h"
#include "base/json.h"
#include "cluster/library.h"
#include "cost/sampled.h"
#include "model_small.h"
#include "profile/eager.h"
#include "profile/step.h"

namespace partita::profile {
namespace {

Cluster device() { return read_cluster("A100-80GB"); }

Model captured(const char* name) {
  std::string file = std::string(PARTITA_SOURCE_DIR "/tests/data/") + name;
  return parse_model(read_file(file), file);
}

// There before the step: 24 + 32 + 96 + 8 + 8 = 168 bytes. At the peak the embedding (48, seen through `t`),
// the loss (4), the ones (32) and the gradient being made (24) are alive as well; the product (32) died with
// the loss.
TEST(ProfileStep, PeakFollowsBirthAndDeathOfStorages) {
  StepProfile profile = profile_step(small_model(), device(), 1);
  EXPECT_EQ(profile.memory.peak, 168 + 48 + 4 + 32 + 24);
  EXPECT_EQ(small_model().ops[profile.memory.peak_op].name, "fc/mm.grad.1");
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
  EXPECT_EQ(profile.memory.peak, 168 + 8 + 48 + 4 + 32 + 24);
}

TEST(ProfileStep, ModulesAddUp) {
  StepProfile profile = profile_step(small_model(), device(), 1);
  std::vector<std::string> names;
  for (const ModuleCost& module : profile.modules) names.push_back(module.name);
  EXPECT_EQ(names, (std::vector<std::string>{"", "fc", "loss", "count", "head"}));  // "": the batch
  EXPECT_EQ(profile.modules[1].params, 6);
  EXPECT_EQ(profile.modules[4].param_bytes, 8);
  EXPECT_EQ(profile.total.params, 8);
  EXPECT_EQ(profile.total.ops, 7);
  EXPECT_EQ(profile.modules[1].backward, 2 * 3 * 4 * 2);
}

TEST(ProfileStep, DepthCutsModulePaths) {
  Model model = captured("gpt2-tiny.model.json");
  StepProfile whole = profile_step(model, device(), 0), fine = profile_step(model, device(), 100);
  ASSERT_EQ(whole.modules.size(), 1u);
  EXPECT_EQ(whole.modules[0].name, "");
  EXPECT_GT(fine.modules.size(), 20u);
  EXPECT_EQ(whole.total.params, fine.total.params);
  EXPECT_EQ(whole.total.saved_bytes, fine.total.saved_bytes);
  EXPECT_EQ(whole.memory.peak, fine.memory.peak);
}

TEST(ProfileStep, ThePeakIsTheSumOfWhatIsAlive) {
  Model model = captured("gpt2-tiny.model.json");
  Upkeep upkeep{.optimizer = {.name = "adamw"}, .master = DType::kFloat32};
  for (const Upkeep& kept : {Upkeep{}, upkeep}) {
    StepProfile profile = profile_step(model, device(), 3, kept);
    Bytes causes = 0, alive = 0, modules = 0;
    for (Bytes bytes : profile.memory.at_peak) causes += bytes;
    for (const AlivePart& part : profile.memory.alive) alive += part.bytes;
    for (const ModuleCost& module : profile.modules) modules += module.peak_bytes;
    EXPECT_EQ(causes, profile.memory.peak);
    EXPECT_EQ(alive, profile.memory.peak);
    EXPECT_EQ(modules, profile.memory.peak);
    EXPECT_EQ(profile.memory.saved, profile.total.saved_bytes);
  }
}

// Megatron-LM's mixed precision: 2 weight + 4 gradient + 4 master + 8 Adam.
TEST(ProfileStep, BytesOfAParameterFollowItsPrecisions) {
  Upkeep upkeep{{.name = "adamw"}, DType::kFloat32, DType::kFloat32, DType::kFloat32};
  EXPECT_EQ(bytes_per_parameter(DType::kBFloat16, upkeep).total(), 18);
  EXPECT_EQ(bytes_per_parameter(DType::kBFloat16, {}).total(), 4);
  EXPECT_EQ(bytes_per_parameter(DType::kFloat32, {.optimizer = {.name = "adamw"}}).total(), 16);
}

// States are there from the start: they raise every moment by the same bytes.
TEST(ProfileStep, StatesAddToThePeak) {
  Model model = captured("gpt2-tiny.model.json");
  StepProfile plain = profile_step(model, device(), 1);
  StepProfile adamw = profile_step(model, device(), 1, {.optimizer = {.name = "adamw"}});
  EXPECT_EQ(adamw.memory.peak, plain.memory.peak + 2 * plain.total.param_bytes);
  EXPECT_EQ(adamw.memory.at_peak[static_cast<size_t>(Purpose::kOptimizer)], 2 * plain.total.param_bytes);
}

TEST(ProfileStep, LayersAlikeAreOneRow) {
  StepProfile profile = profile_step(captured("gpt2-tiny4.model.json"), device(), 4);
  auto row = std::find_if(profile.tree.begin(), profile.tree.end(), [](auto& r) { return r.count > 1; });
  ASSERT_NE(row, profile.tree.end());
  EXPECT_EQ(row->label, "h.0..3");
  EXPECT_EQ(row->cost.name, "transformer.h.0..3");
  EXPECT_EQ(row->count, 4);
  EXPECT_EQ((row + 1)->label, "ln_1");
  EXPECT_EQ((row + 1)->depth, row->depth + 1);
  int64_t params = 0;
  for (const ModuleCost& module : profile.modules)
    if (module.name.starts_with("transformer.h.")) params += module.params;
  EXPECT_EQ(row->cost.params, params);
}

// fc/mm.grad.1 makes the gradient of fc's weight; everything else of backward leads on.
TEST(ProfileStep, WeightGradientsAreToldFromInputGradients) {
  Model model = captured("gpt2-tiny.model.json");
  std::vector<Phase> phases = phases_of(model);
  std::map<std::string, Phase> of;
  for (size_t i = 0; i < model.ops.size(); ++i) of[model.ops[i].name] = phases[i];
  const std::string fc = "transformer.h.0.mlp.c_fc/addmm";
  EXPECT_EQ(of.at(fc), Phase::kForward);
  int input = 0, weight = 0;
  for (int j = 0; of.contains(fc + ".grad." + std::to_string(j)); ++j) {
    const Op& op = *std::find_if(model.ops.begin(), model.ops.end(),
                                 [&](const Op& o) { return o.name == fc + ".grad." + std::to_string(j); });
    if (op.target == "aten.mm.default") ++(of.at(op.name) == Phase::kWeightGrad ? weight : input);
    EXPECT_TRUE(op.target != "aten.sum.dim_IntList" || of.at(op.name) == Phase::kWeightGrad);
  }
  EXPECT_EQ(input, 1);
  EXPECT_EQ(weight, 1);
}

// The second product of the same weight is added into the first: eager PyTorch holds two gradients, we three.
TEST(EagerStorages, ASecondGradientIsAddedInPlace) {
  Model model = small_model();
  Tensor gradient = model.tensors[9];
  for (const char* name : {"fc/mm.grad.2:0", "fc/mm.grad.3:0"}) {
    gradient.name = name;
    model.tensors.push_back(gradient);
  }
  Op again = model.ops[5];
  again.name = "fc/mm.grad.2";
  again.outputs = {TensorId{12}};
  Op sum{"fc/mm.grad.3",
         "aten.add.Tensor",
         {Arg::of(TensorId{9}), Arg::of(TensorId{12})},
         {},
         {TensorId{13}},
         true};
  model.ops.insert(model.ops.begin() + 6, {again, sum});
  model.gradients[0].second = TensorId{13};
  ASSERT_EQ(check(model), std::vector<std::string>{});
  Storages ours = find_storages(model), eager = eager_storages(model, ours);
  EXPECT_NE(ours.of[13], ours.of[9]);
  EXPECT_EQ(eager.of[13], eager.of[9]);
  EXPECT_TRUE(eager[TensorId{13}].kept);
  auto bytes = [](const Storages& storages) {
    Bytes sum = 0;
    for (const Storage& storage : storages.all) sum += storage.bytes;
    return sum;
  };
  EXPECT_EQ(bytes(eager), bytes(ours) - 24);
}

// The gradient of gather reads indices alone, but autograd keeps what was gathered from until then.
TEST(EagerStorages, GatherKeepsItsInput) {
  Model model = small_model();
  model.ops[1].target = "aten.gather.default";
  model.ops[4].args = {Arg::of(TensorId{5})};
  Storages ours = find_storages(model), eager = eager_storages(model, ours);
  EXPECT_EQ(ours[TensorId{4}].last_use, 1);
  EXPECT_EQ(eager[TensorId{4}].last_use, 5);
}

TEST(Calibration, AMeasuredOpTakesWhatItTookAndOthersWhatIsNear) {
  Model model = small_model();
  Cluster cpu = read_cluster("cpu");
  OpSample product = sample_of(model, model.ops[1]);
  EXPECT_EQ(product.signature, "aten.mm.default float32[4,3|3,1] float32[3,2|2,1]");
  product.seconds = 7e-6;
  product.workspace = 40;
  product.retained = 8;
  Calibration calibration{.machine = "here",
                          .cores = 2,
                          .expected_error = 0.04,
                          .samples = {product},
                          .transfers = {{"all_reduce", 2, 1024, 3e-6}}};
  EXPECT_EQ(parse_calibration(to_json(calibration), "file"), calibration);
  SampledCosts sampled(calibration.samples, cpu.device);
  EXPECT_EQ(sampled.seconds(product), 7e-6);
  OpSample twice = product;
  twice.signature = "another";
  EXPECT_NEAR(sampled.seconds(twice), 7e-6, 1e-12);
  // During the product: what was there, its two outputs, and the hidden bytes that were measured.
  StepProfile profile = profile_step(model, {cpu, calibration}, 1);
  EXPECT_EQ(profile.memory.during[1], 168 + 48 + 32 + 8 + 40);
}

// A CPU computes bfloat16 products at another rate; samples of one dtype speak for it at that rate.
TEST(Calibration, SamplesAreHeldAgainstTheRateOfTheirDtype) {
  Device cpu = read_cluster("cpu").device;
  OpSample known{.signature = "a", .target = "aten.mm.default", .dtype = DType::kBFloat16, .flops = 1e9};
  known.seconds = 2 * compute_seconds(cpu, DType::kBFloat16, known.flops, 0);
  std::vector<OpSample> samples = {known};
  OpSample larger = known;
  larger.signature = "b";
  larger.flops = 2e9;
  EXPECT_NEAR(SampledCosts(samples, cpu).seconds(larger), 2 * known.seconds, 1e-6);
}

TEST(Calibration, TransfersLieBetweenWhatWasMeasured) {
  SampledTransfers sampled({{"send", 2, 1000, 1e-6}, {"send", 2, 3000, 5e-6}, {"all_gather", 4, 1000, 8e-6}});
  auto by_size = [](int ranks) { return ranks - 1.0; };
  EXPECT_TRUE(sampled.knows("send"));
  EXPECT_FALSE(sampled.knows("all_reduce"));
  EXPECT_DOUBLE_EQ(sampled.seconds("send", 2, 10, by_size), 1e-6);
  EXPECT_DOUBLE_EQ(sampled.seconds("send", 2, 2000, by_size), 3e-6);
  EXPECT_DOUBLE_EQ(sampled.seconds("send", 2, 6000, by_size), 10e-6);
  // Two ranks of a ring of four pass one piece instead of three.
  EXPECT_DOUBLE_EQ(sampled.seconds("all_gather", 2, 1000, by_size), 8e-6 / 3);
}

TEST(Prices, ComeFromMeasurementsWhereThereAreAny) {
  Cluster cpu = read_cluster("4xcpu");
  Prices spec = cpu;
  EXPECT_EQ(spec.tier().name, "spec sheet");
  EXPECT_EQ(spec.cores(), 0);
  EXPECT_EQ(spec.collective("all_reduce", 1 << 20, {0, 1}), all_reduce_seconds(cpu, 1 << 20, {2, 1}));
  EXPECT_EQ(spec.send(1 << 20, 0, 3), send_seconds(cpu, 1 << 20, 0, 3));
  OpSample add{.signature = "partita.add 300", .target = "partita.add", .moved = 300, .seconds = 9e-6};
  Prices measured(cpu, {.machine = "here",
                        .cores = 2,
                        .expected_error = 0.03,
                        .samples = {add},
                        .transfers = {{"all_reduce", 2, 1 << 20, 7e-3}, {"send", 2, 1 << 20, 3e-3}}});
  EXPECT_EQ(measured.tier().name, "calibrated");
  EXPECT_EQ(measured.tier().expected_error, 0.03);
  EXPECT_EQ(measured.cores(), 2);
  EXPECT_DOUBLE_EQ(measured.collective("all_reduce", 1 << 20, {2, 3}), 7e-3);
  EXPECT_EQ(measured.collective("all_reduce", 1 << 20, {2}), 0);
  EXPECT_DOUBLE_EQ(measured.send(1 << 20, 0, 3), 3e-3);
  EXPECT_EQ(measured.send(1 << 20, 3, 3), 0);
  EXPECT_NEAR(measured.move("add", DType::kFloat32, 300, cpu.device), 9e-6, 1e-12);
  // Nothing was measured of a gather: the links of the cluster speak.
  EXPECT_EQ(measured.collective("all_gather", 64, {0, 1}), all_gather_seconds(cpu, 64, {2, 1}));
}

}  // namespace
}  // namespace partita::profile
