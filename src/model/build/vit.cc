// ViT for image classification: patches by a convolution, a class token, layer norms before each half of a
// layer.
#include <fmt/format.h>

#include <cmath>

#include "model/build/differentiate.h"
#include "model/build/family.h"
#include "model/build/layers.h"

namespace partita::model::build {
namespace {

struct Vit {
  int64_t layers, hidden, heads, inner, image, patch, channels, labels;
  double eps;
  std::string activation;
  bool bias;

  int64_t patches() const { return (image / patch) * (image / patch); }
};

Vit read(const Config& config) {
  Vit c;
  c.layers = config.size("num_hidden_layers", 12);
  c.hidden = config.size("hidden_size", 768);
  c.heads = config.size("num_attention_heads", 12);
  c.inner = config.size("intermediate_size", 3072);
  c.image = config.size("image_size", 224);
  c.patch = config.size("patch_size", 16);
  c.channels = config.size("num_channels", 3);
  c.labels = config.labels();
  c.eps = config.number("layer_norm_eps", 1e-12);
  c.activation = config.activation("hidden_act", "gelu");
  c.bias = config.boolean("qkv_bias", true);
  config.need_divides("hidden_size", c.hidden, "num_attention_heads", c.heads);
  config.need_divides("image_size", c.image, "patch_size", c.patch);
  return c;
}

void declare_layer(Graph& g, const Vit& c, const std::string& layer) {
  for (const char* name : {"q_proj", "k_proj", "v_proj"})
    declare_linear(g, layer + "attention." + name, c.hidden, c.hidden, c.bias);
  declare_linear(g, layer + "attention.o_proj", c.hidden, c.hidden, true);
  declare_norm(g, layer + "layernorm_before", c.hidden, true);
  declare_norm(g, layer + "layernorm_after", c.hidden, true);
  declare_linear(g, layer + "mlp.fc1", c.hidden, c.inner, true);
  declare_linear(g, layer + "mlp.fc2", c.inner, c.hidden, true);
}

void declare(Graph& g, const Vit& c, int64_t batch) {
  g.parameter("vit.embeddings.cls_token", {1, 1, c.hidden});
  g.parameter("vit.embeddings.position_embeddings", {1, c.patches() + 1, c.hidden});
  g.parameter("vit.embeddings.patch_embeddings.projection.weight", {c.hidden, c.channels, c.patch, c.patch});
  g.parameter("vit.embeddings.patch_embeddings.projection.bias", {c.hidden});
  for (int64_t k = 0; k < c.layers; ++k) declare_layer(g, c, fmt::format("vit.layers.{}.", k));
  declare_norm(g, "vit.layernorm", c.hidden, true);
  declare_linear(g, "classifier", c.hidden, c.labels, true);
  g.batch("pixel_values", {batch, c.channels, c.image, c.image}, DType::kFloat32);
  g.batch("labels", {batch}, DType::kInt64, c.labels);
}

TensorId embeddings(Graph& g, const Vit& c) {
  auto scope = g.in("embeddings");
  TensorId x = patches(g, g.named("pixel_values"), c.patch);
  TensorId first = expand(g, g.weight("cls_token"), {g.size(x, 0), -1, -1});
  return add(g, cat(g, {first, x}, 1), g.weight("position_embeddings"));
}

TensorId attend(Graph& g, const Vit& c, TensorId x) {
  auto scope = g.in("attention");
  int64_t width = c.hidden / c.heads;
  TensorId query = to_heads(g, linear(g, "q_proj", x), width);
  TensorId key = to_heads(g, linear(g, "k_proj", x), width);
  TensorId value = to_heads(g, linear(g, "v_proj", x), width);
  double scale = std::pow(static_cast<double>(width), -0.5);
  return linear(g, "o_proj", from_heads(g, attention(g, query, key, value, {.scale = scale})));
}

TensorId feed_forward(Graph& g, const Vit& c, TensorId x) {
  auto scope = g.in("mlp");
  return linear(g, "fc2", activation(g, "activation_fn", c.activation, linear(g, "fc1", x)));
}

TensorId layer(Graph& g, const Vit& c, int64_t index, TensorId x) {
  auto scope = g.in("layers", static_cast<int>(index));
  x = add(g, attend(g, c, norm(g, "layernorm_before", x, c.eps)), x);
  return add(g, feed_forward(g, c, norm(g, "layernorm_after", x, c.eps)), x);
}

TensorId encoder(Graph& g, const Vit& c) {
  auto scope = g.in("vit");
  TensorId x = embeddings(g, c);
  for (int64_t k = 0; k < c.layers; ++k) x = layer(g, c, k, x);
  return norm(g, "layernorm", x, c.eps);
}

}  // namespace

Model build_vit(const Config& config, StepSize size) {
  Vit c = read(config);
  Graph g("vit");
  declare(g, c, size.batch);
  TensorId x = encoder(g, c);
  TensorId loss = token_loss(g, linear(g, "classifier", select(g, x, 1, 0)), g.named("labels"));
  return g.finish(loss, differentiate(g, loss));
}

}  // namespace partita::model::build
