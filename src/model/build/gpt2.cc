// GPT-2 and GPT-3: learned positions, layer norms before each half of a block, fused qkv, tied head.
#include <fmt/format.h>

#include <cmath>

#include "model/build/differentiate.h"
#include "model/build/family.h"
#include "model/build/layers.h"

namespace partita::model::build {
namespace {

struct Gpt2 {
  int64_t layers, hidden, heads, inner, vocabulary, positions;
  double eps;
  std::string activation;
  bool tied;
};

Gpt2 read(const Config& config) {
  Gpt2 c;
  c.layers = config.size("n_layer", 12);
  c.hidden = config.size("n_embd", 768);
  c.heads = config.size("n_head", 12);
  c.inner = config.size_or("n_inner", 4 * c.hidden);
  c.vocabulary = config.size("vocab_size", 50257);
  c.positions = config.size("n_positions", 1024);
  c.eps = config.number("layer_norm_epsilon", 1e-5);
  c.activation = config.activation("activation_function", "gelu_new");
  c.tied = config.boolean("tie_word_embeddings", true);
  config.need("scale_attn_weights", true);
  config.need("scale_attn_by_inverse_layer_idx", false);
  config.need("reorder_and_upcast_attn", false);
  config.need("add_cross_attention", false);
  config.need_divides("n_embd", c.hidden, "n_head", c.heads);
  return c;
}

// Conv1D keeps its weight as [in, out].
void declare_conv1d(Graph& g, const std::string& name, int64_t in, int64_t out) {
  g.parameter(name + ".weight", {in, out});
  g.parameter(name + ".bias", {out});
}

TensorId conv1d(Graph& g, std::string_view name, TensorId x) {
  auto scope = g.in(name);
  TensorId weight = g.weight("weight");
  TensorId out = addmm(g, g.weight("bias"), view(g, x, {-1, g.size(x, -1)}), weight);
  return view(g, out, {g.size(x, 0), g.size(x, 1), g.size(weight, 1)});
}

void declare(Graph& g, const Gpt2& c, StepSize size) {
  g.parameter("transformer.wte.weight", {c.vocabulary, c.hidden});
  g.parameter("transformer.wpe.weight", {c.positions, c.hidden});
  for (int64_t k = 0; k < c.layers; ++k) {
    std::string block = fmt::format("transformer.h.{}.", k);
    declare_norm(g, block + "ln_1", c.hidden, true);
    declare_conv1d(g, block + "attn.c_attn", c.hidden, 3 * c.hidden);
    declare_conv1d(g, block + "attn.c_proj", c.hidden, c.hidden);
    declare_norm(g, block + "ln_2", c.hidden, true);
    declare_conv1d(g, block + "mlp.c_fc", c.hidden, c.inner);
    declare_conv1d(g, block + "mlp.c_proj", c.inner, c.hidden);
  }
  declare_norm(g, "transformer.ln_f", c.hidden, true);
  if (!c.tied) declare_linear(g, "lm_head", c.hidden, c.vocabulary, false);
  g.batch("input_ids", {size.batch, size.seq}, DType::kInt64, c.vocabulary);
  g.batch("labels", {size.batch, size.seq}, DType::kInt64, c.vocabulary);
}

TensorId embed_tokens(Graph& g) {
  TensorId ids = g.named("input_ids");
  TensorId tokens = embed(g, "wte", view(g, ids, {-1, g.size(ids, 1)}));
  TensorId places = unsqueeze(g, add(g, arange(g, g.size(ids, 1)), 0), 0);
  return add(g, tokens, embed(g, "wpe", places));
}

TensorId attend(Graph& g, const Gpt2& c, TensorId x) {
  auto scope = g.in("attn");
  int64_t width = c.hidden / c.heads;
  std::vector<TensorId> qkv = split(g, conv1d(g, "c_attn", x), c.hidden, 2);
  TensorId key = to_heads(g, qkv[1], width);
  TensorId value = to_heads(g, qkv[2], width);
  TensorId query = to_heads(g, qkv[0], width);
  double scale = std::pow(static_cast<double>(width), -0.5);
  return conv1d(g, "c_proj",
                from_heads(g, attention(g, query, key, value, {.causal = true, .scale = scale})));
}

TensorId feed_forward(Graph& g, const Gpt2& c, TensorId x) {
  auto scope = g.in("mlp");
  return conv1d(g, "c_proj", activation(g, "act", c.activation, conv1d(g, "c_fc", x)));
}

TensorId block(Graph& g, const Gpt2& c, int64_t index, TensorId x) {
  auto scope = g.in("h", static_cast<int>(index));
  x = add(g, attend(g, c, norm(g, "ln_1", x, c.eps)), x);
  return add(g, x, feed_forward(g, c, norm(g, "ln_2", x, c.eps)));
}

TensorId transformer(Graph& g, const Gpt2& c) {
  auto scope = g.in("transformer");
  TensorId x = embed_tokens(g);
  for (int64_t k = 0; k < c.layers; ++k) x = block(g, c, k, x);
  return view(g, norm(g, "ln_f", x, c.eps), {-1, g.size(x, 1), c.hidden});
}

}  // namespace

Model build_gpt2(const Config& config, StepSize size) {
  Gpt2 c = read(config);
  need_positions(config, "n_positions", c.positions, size.seq);
  Graph g("gpt2");
  declare(g, c, size);
  TensorId x = transformer(g, c);
  TensorId head = g.named(c.tied ? "transformer.wte.weight" : "lm_head.weight");
  TensorId loss = next_token_loss(g, linear_with(g, "lm_head", x, head), g.named("labels"));
  return g.finish(loss, differentiate(g, loss));
}

}  // namespace partita::model::build
