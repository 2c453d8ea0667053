// What the rows say about hidden workspace is what the allocator counts, byte for byte, on one thread.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <map>

#include "base/file.h"
#include "base/json.h"
#include "model/build/build.h"
#include "model/rewrite/decompose.h"
#include "model/rewrite/retype.h"
#include "model/row.h"
#include "run/draw.h"
#include "run/torch/measure.h"
#include "run/torch/measure_moves.h"
#include "run/torch/workspace.h"

namespace partita::run {
namespace {

Model captured(const std::string& name) {
  std::string path = std::string(PARTITA_SOURCE_DIR) + "/tests/data/" + name + ".model.json";
  return parse_model(read_file(path), path);
}

class Workspace : public testing::TestWithParam<std::tuple<const char*, DType>> {};
INSTANTIATE_TEST_SUITE_P(Models, Workspace,
                         testing::Combine(testing::Values("gpt2-tiny", "llama-tiny"),
                                          testing::Values(DType::kFloat32, DType::kFloat64)));

TEST_P(Workspace, RowsPredictTheAllocator) {
  auto [name, dtype] = GetParam();
  at::set_num_threads(1);
  for (const Model& model : {retype(captured(name), dtype), decompose(retype(captured(name), dtype))}) {
    HostTensors weights = draw_weights(model, 0, {}), batch = draw_batch(model, 0, {});
    for (const OpMemory& memory : measure_workspace(model, views_of(weights), views_of(batch))) {
      const Op& op = model[memory.op];
      EXPECT_EQ(memory.workspace, workspace_of(view_of(model, op))) << op.name << " " << op.target;
      Bytes outputs = 0;
      for (TensorId output : op.outputs)
        if (output && !is_view(op)) outputs += bytes_of(model[output]);
      EXPECT_EQ(memory.outputs, outputs) << op.name << " " << op.target;
    }
  }
}

// Without oneDNN, as for float64, a convolution writes the windows of its input beside each other.
TEST(ConvolutionWorkspace, RowsPredictTheAllocator) {
  at::set_num_threads(1);
  const char* vit =
      R"({"model_type": "vit", "num_hidden_layers": 1, "hidden_size": 6, "num_attention_heads": 3,
                        "intermediate_size": 8, "image_size": 12, "patch_size": 6})";
  const char* swin = R"({"model_type": "swin", "image_size": 16, "patch_size": 2, "window_size": 2,
                         "embed_dim": 4, "depths": [2, 1], "num_heads": [2, 4]})";
  for (const Model& model : {retype(captured("convnet-tiny"), DType::kFloat64),
                             retype(build_model(swin, "config", {.batch = 2}), DType::kFloat64),
                             retype(build_model(vit, "config", {.batch = 3}), DType::kFloat64)}) {
    HostTensors weights = draw_weights(model, 0, {}), batch = draw_batch(model, 0, {});
    for (const OpMemory& memory : measure_workspace(model, views_of(weights), views_of(batch))) {
      const Op& op = model[memory.op];
      EXPECT_EQ(memory.workspace, workspace_of(view_of(model, op))) << op.name << " " << op.target;
    }
  }
}

// oneDNN's convolutions, in float32, copy operands into blocks of channels: a bound is known, of all else the
// bytes. Batches as data parallelism and micro-batches leave them.
TEST(ConvolutionWorkspace, RowsBoundOneDnn) {
  at::set_num_threads(1);
  const char* vit =
      R"({"model_type": "vit", "num_hidden_layers": 1, "hidden_size": 24, "num_attention_heads": 3,
                        "intermediate_size": 8, "image_size": 32, "patch_size": 8})";
  std::vector<Model> models = {captured("convnet-tiny")};
  for (int64_t batch : {1, 2, 4}) models.push_back(build_model(vit, "config", {.batch = batch}));
  for (const Model& model : models) {
    HostTensors weights = draw_weights(model, 0, {}), batch = draw_batch(model, 0, {});
    for (const OpMemory& memory : measure_workspace(model, views_of(weights), views_of(batch))) {
      const Op& op = model[memory.op];
      Bytes said = workspace_of(view_of(model, op));
      bool exact = op.target.find("convolution") == std::string::npos;
      EXPECT_LE(memory.workspace, said) << op.name << " " << op.target;
      EXPECT_TRUE(!exact || memory.workspace == said) << op.name << " " << op.target;
    }
  }
}

TEST(Measure, EveryOpTakesTimeAndHidesWhatItsRowSays) {
  Model model = captured("gpt2-tiny");
  HostTensors weights = draw_weights(model, 0, {}), batch = draw_batch(model, 0, {});
  HostViews values = views_of(weights);
  values.merge(views_of(batch));
  StepMeasure measure = measure_step(model, values);
  EXPECT_GT(measure.seconds, 0);
  ASSERT_EQ(measure.ops.size(), model.ops.size());
  for (size_t i = 0; i < model.ops.size(); ++i) {
    EXPECT_GT(measure.ops[i].seconds, 0) << model.ops[i].name;
    EXPECT_EQ(measure.ops[i].workspace, workspace_of(view_of(model, model.ops[i]))) << model.ops[i].name;
  }
}

// Every instruction between ops is timed, with the bytes that a simulation would ask about.
TEST(Measure, InstructionsBetweenOpsAreTimed) {
  std::map<std::string, Bytes> moved;
  for (const MoveMeasure& found : measure_moves({256}, 2)) {
    moved[found.kind] = found.moved;
    ASSERT_EQ(found.seconds.size(), 2u) << found.kind;
    for (Seconds seconds : found.seconds) EXPECT_GT(seconds, 0) << found.kind;
  }
  EXPECT_EQ(moved, (std::map<std::string, Bytes>{{"slice", 1024},
                                                 {"concat", 2048},
                                                 {"zeros", 1024},
                                                 {"add", 3072},
                                                 {"cast", 1536},
                                                 {"scale", 2048},
                                                 {"squares", 1040},
                                                 {"clip", 2056},
                                                 {"optimize", 7168}}));
}

}  // namespace
}  // namespace partita::run
