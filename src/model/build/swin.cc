// Swin for image classification: attention inside windows that shift by half in every other block, and
// patches merged two by two after each stage.
#include <fmt/format.h>

#include <cmath>

#include "model/build/differentiate.h"
#include "model/build/family.h"
#include "model/build/layers.h"

namespace partita::model::build {
namespace {

struct Swin {
  std::vector<int64_t> depths, heads;
  int64_t hidden, image, patch, channels, window, labels;
  double eps, ratio;
  std::string activation;
  bool bias;
};

/// One stage: patches in a square of this side, of this width.
struct Stage {
  int64_t index, depth, heads, side, width;
};

std::vector<Stage> stages_of(const Swin& c) {
  std::vector<Stage> stages;
  int64_t side = c.image / c.patch, width = c.hidden;
  for (size_t k = 0; k < c.depths.size(); ++k, side /= 2, width *= 2)
    stages.push_back({static_cast<int64_t>(k), c.depths[k], c.heads[k], side, width});
  return stages;
}

void need_whole_windows(const Config& config, const Swin& c) {
  for (const Stage& stage : stages_of(c)) {
    if (stage.side < c.window || stage.side % c.window != 0)
      config.in().fail(
          fmt::format("stage {} has {} x {} patches, which windows of {} do not cover evenly; that has no "
                      "builder, {}",
                      stage.index, stage.side, stage.side, c.window, config.capture_it()));
    config.need_divides("the width of a stage", stage.width, "its num_heads", stage.heads);
  }
}

Swin read(const Config& config) {
  Swin c;
  c.depths = config.sizes("depths", {2, 2, 6, 2});
  c.heads = config.sizes("num_heads", {3, 6, 12, 24});
  c.hidden = config.size("embed_dim", 96);
  c.image = config.size("image_size", 224);
  c.patch = config.size("patch_size", 4);
  c.channels = config.size("num_channels", 3);
  c.window = config.size("window_size", 7);
  c.labels = config.labels();
  c.eps = config.number("layer_norm_eps", 1e-5);
  c.ratio = config.number("mlp_ratio", 4);
  c.activation = config.activation("hidden_act", "gelu");
  c.bias = config.boolean("qkv_bias", true);
  config.need("use_absolute_embeddings", false);
  if (c.depths.size() != c.heads.size() || c.depths.size() > 8)
    config.in()["num_heads"].fail("needs one number for each of `depths`, at most 8");
  config.need_divides("image_size", c.image, "patch_size", c.patch);
  need_whole_windows(config, c);
  return c;
}

int64_t inner(const Swin& c, const Stage& stage) {
  return static_cast<int64_t>(c.ratio * static_cast<double>(stage.width));
}

std::string block_name(const Stage& stage, int64_t block) {
  return fmt::format("swin.encoder.layers.{}.blocks.{}.", stage.index, block);
}

void declare_block(Graph& g, const Swin& c, const Stage& stage, const std::string& block) {
  for (const char* name : {"q_proj", "k_proj", "v_proj"})
    declare_linear(g, block + "attention." + name, stage.width, stage.width, c.bias);
  declare_linear(g, block + "attention.o_proj", stage.width, stage.width, true);
  int64_t distances = 2 * c.window - 1;
  g.parameter(block + "attention.relative_position_bias.relative_position_bias_table",
              {distances * distances, stage.heads});
  declare_norm(g, block + "layernorm_before", stage.width, true);
  declare_norm(g, block + "layernorm_after", stage.width, true);
  declare_linear(g, block + "mlp.fc1", stage.width, inner(c, stage), true);
  declare_linear(g, block + "mlp.fc2", inner(c, stage), stage.width, true);
}

void declare(Graph& g, const Swin& c, const std::vector<Stage>& stages, int64_t batch) {
  g.parameter("swin.embeddings.patch_embeddings.projection.weight", {c.hidden, c.channels, c.patch, c.patch});
  g.parameter("swin.embeddings.patch_embeddings.projection.bias", {c.hidden});
  declare_norm(g, "swin.embeddings.norm", c.hidden, true);
  for (const Stage& stage : stages) {
    for (int64_t k = 0; k < stage.depth; ++k) declare_block(g, c, stage, block_name(stage, k));
    if (&stage == &stages.back()) continue;
    std::string merge = fmt::format("swin.encoder.layers.{}.downsample.", stage.index);
    declare_linear(g, merge + "reduction", 4 * stage.width, 2 * stage.width, false);
    declare_norm(g, merge + "norm", 4 * stage.width, true);
  }
  declare_norm(g, "swin.layernorm", stages.back().width, true);
  declare_linear(g, "classifier", stages.back().width, c.labels, true);
  int64_t pairs = c.window * c.window * c.window * c.window;
  for (const Stage& stage : stages)
    for (int64_t k = 0; k < stage.depth; ++k)
      g.buffer(block_name(stage, k) + "attention.relative_position_bias.relative_position_index", {pairs},
               DType::kInt64);
  g.batch("pixel_values", {batch, c.channels, c.image, c.image}, DType::kFloat32);
  g.batch("labels", {batch}, DType::kInt64, c.labels);
}

// [n, side, side, width] -> [n * windows, window, window, width]
TensorId cut(Graph& g, TensorId x, int64_t window) {
  int64_t count = g.size(x, 1) / window, width = g.size(x, 3);
  TensorId grid = view(g, x, {g.size(x, 0), count, window, count, window, width});
  return reshape(g, transpose(g, grid, 2, 3), {-1, window, window, width});
}

TensorId join(Graph& g, TensorId x, int64_t side) {
  int64_t window = g.size(x, 1), count = side / window, width = g.size(x, 3);
  TensorId grid = view(g, x, {-1, count, count, window, window, width});
  return reshape(g, transpose(g, grid, 2, 3), {-1, side, side, width});
}

// Which of three bands a row (or column) lies in after the shift: a window may hold patches of several.
TensorId bands(Graph& g, TensorId places, int64_t side, int64_t window, int64_t shift) {
  TensorId first = to_dtype(g, compare(g, "aten.ge.Scalar", places, side - window), DType::kInt64);
  TensorId second = to_dtype(g, compare(g, "aten.ge.Scalar", places, side - shift), DType::kInt64);
  return add(g, first, second);
}

TensorId filled(Graph& g, TensorId x, TensorId where_true, double value) {
  return g.call("aten.masked_fill.Scalar", {Arg::of(x), Arg::of(where_true), Operand(value).arg},
                {g.dims(x), g[x].dtype});
}

// -100 between patches of one window that come from different sides of the image, else 0: [windows, n, n].
TensorId shifted_mask(Graph& g, int64_t side, int64_t window, int64_t shift) {
  TensorId rows = arange(g, side), columns = arange(g, side);
  TensorId row_bands = bands(g, rows, side, window, shift),
           column_bands = bands(g, columns, side, window, shift);
  TensorId down = mul(g, unsqueeze(g, unsqueeze(g, unsqueeze(g, row_bands, 0), 2), 3), 3);
  TensorId across = unsqueeze(g, unsqueeze(g, unsqueeze(g, column_bands, 0), 1), 3);
  TensorId region = to_dtype(g, add(g, down, across), DType::kFloat32);
  TensorId flat = view(g, cut(g, region, window), {-1, window * window});
  TensorId keys = unsqueeze(g, flat, 1);
  TensorId difference = sub(g, keys, unsqueeze(g, flat, 2));
  TensorId far = filled(g, difference, compare(g, "aten.ne.Scalar", difference, 0), -100.0);
  return filled(g, far, compare(g, "aten.eq.Scalar", difference, 0), 0.0);
}

TensorId position_bias(Graph& g, int64_t tokens) {
  auto scope = g.in("relative_position_bias");
  TensorId table = g.weight("relative_position_bias_table"), index = g.weight("relative_position_index");
  Shape chosen = {g.size(index, 0), g.size(table, 1)};
  TensorId rows = g.call("aten.index.Tensor", {Arg::of(table), tensors({index})},
                         {{chosen, contiguous_strides(chosen)}, g[table].dtype});
  TensorId square = view(g, rows, {tokens, tokens, -1});
  return unsqueeze(g, clone(g, permute(g, square, {2, 0, 1}), true), 0);
}

// The mask of each window for each image of the batch.
TensorId spread_mask(Graph& g, TensorId mask, int64_t images) {
  TensorId one = unsqueeze(g, unsqueeze(g, mask, 1), 0);
  int64_t tokens = g.size(mask, 1);
  return reshape(g, expand(g, one, {images, -1, -1, -1, -1}), {images * g.size(mask, 0), 1, tokens, tokens});
}

TensorId attend(Graph& g, const Stage& stage, TensorId x, TensorId mask) {
  auto scope = g.in("attention");
  int64_t width = stage.width / stage.heads, tokens = g.size(x, 1);
  TensorId query = to_heads(g, linear(g, "q_proj", x), width);
  TensorId key = to_heads(g, linear(g, "k_proj", x), width);
  TensorId value = to_heads(g, linear(g, "v_proj", x), width);
  TensorId bias = position_bias(g, tokens);
  if (mask) bias = add(g, bias, spread_mask(g, mask, g.size(x, 0) / g.size(mask, 0)));
  double scale = std::pow(static_cast<double>(width), -0.5);
  return linear(g, "o_proj", from_heads(g, biased_attention(g, query, key, value, scale, bias)));
}

TensorId feed_forward(Graph& g, const Swin& c, TensorId x) {
  auto scope = g.in("mlp");
  return linear(g, "fc2", activation(g, "activation_fn", c.activation, linear(g, "fc1", x)));
}

TensorId block(Graph& g, const Swin& c, const Stage& stage, int64_t index, TensorId x) {
  auto scope = g.in("blocks", static_cast<int>(index));
  int64_t images = g.size(x, 0), side = stage.side, window = c.window;
  int64_t shift = index % 2 == 1 && side > window ? window / 2 : 0;
  TensorId image = view(g, norm(g, "layernorm_before", x, c.eps), {images, side, side, stage.width});
  if (shift) image = roll(g, image, {-shift, -shift}, {1, 2});
  TensorId windows = view(g, cut(g, image, window), {-1, window * window, stage.width});
  TensorId mask = shift ? shifted_mask(g, side, window, shift) : TensorId{};
  TensorId out = view(g, attend(g, stage, windows, mask), {-1, window, window, stage.width});
  TensorId joined = join(g, out, side);
  if (shift) joined = roll(g, joined, {shift, shift}, {1, 2});
  x = add(g, x, view(g, joined, {images, side * side, stage.width}));
  return add(g, feed_forward(g, c, norm(g, "layernorm_after", x, c.eps)), x);
}

// Four neighbours become one patch of twice the width.
TensorId merge(Graph& g, const Swin& c, const Stage& stage, TensorId x) {
  auto scope = g.in("downsample");
  int64_t images = g.size(x, 0);
  TensorId image = view(g, x, {images, stage.side, stage.side, stage.width});
  std::vector<TensorId> corners;
  for (int64_t column : {0, 1})
    for (int64_t row : {0, 1})
      corners.push_back(slice(g, slice(g, image, 1, row, kToTheEnd, 2), 2, column, kToTheEnd, 2));
  TensorId wide = view(g, cat(g, corners, -1), {images, -1, 4 * stage.width});
  return linear(g, "reduction", norm(g, "norm", wide, c.eps));
}

TensorId encoder(Graph& g, const Swin& c, const std::vector<Stage>& stages) {
  auto scope = g.in("swin");
  TensorId x;
  {
    auto inside = g.in("embeddings");
    x = norm(g, "norm", patches(g, g.named("pixel_values"), c.patch), c.eps);
  }
  for (const Stage& stage : stages) {
    auto inside = g.in("encoder.layers", static_cast<int>(stage.index));
    for (int64_t k = 0; k < stage.depth; ++k) x = block(g, c, stage, k, x);
    if (&stage != &stages.back()) x = merge(g, c, stage, x);
  }
  TensorId last = norm(g, "layernorm", x, c.eps);
  auto inside = g.in("pooler");
  return mean(g, last, {1}, false);
}

}  // namespace

Model build_swin(const Config& config, StepSize size) {
  Swin c = read(config);
  std::vector<Stage> stages = stages_of(c);
  Graph g("swin");
  declare(g, c, stages, size.batch);
  TensorId loss = token_loss(g, linear(g, "classifier", encoder(g, c, stages)), g.named("labels"));
  return g.finish(loss, differentiate(g, loss));
}

}  // namespace partita::model::build
