// Llama 2 and 3, Mistral, Mixtral: rotary positions, RMS norms, grouped-query attention, gated MLP or
// experts.
#include <fmt/format.h>

#include <cmath>

#include "model/build/differentiate.h"
#include "model/build/family.h"
#include "model/build/layers.h"
#include "model/build/mixture.h"
#include "model/build/rotary.h"

namespace partita::model::build {
namespace {

struct Llama {
  int64_t layers, hidden, heads, key_heads, width, inner, vocabulary;
  int64_t padding = -1;
  double eps;
  std::string activation;
  bool tied, attention_bias, mlp_bias;
  std::optional<Mixture> mixture;  // instead of the MLP
};

// What the configs of these models differ in: their defaults, and which may have a bias.
struct Usual {
  int64_t inner;
  std::optional<int64_t> key_heads;  // none: as many as heads
  bool biases;
};
constexpr Usual kLlama = {11008, std::nullopt, true}, kMistral = {14336, 8, false};

Llama read(const Config& config, const Usual& usual) {
  Llama c;
  c.layers = config.size("num_hidden_layers", 32);
  c.hidden = config.size("hidden_size", 4096);
  c.heads = config.size("num_attention_heads", 32);
  c.key_heads = usual.key_heads ? config.size("num_key_value_heads", *usual.key_heads)
                                : config.size_or("num_key_value_heads", c.heads);
  c.inner = config.size("intermediate_size", usual.inner);
  c.vocabulary = config.size("vocab_size", 32000);
  c.eps = config.number("rms_norm_eps", 1e-6);
  c.activation = config.activation("hidden_act", "silu");
  c.tied = config.boolean("tie_word_embeddings", false);
  c.attention_bias = usual.biases && config.boolean("attention_bias", false);
  c.mlp_bias = usual.biases && config.boolean("mlp_bias", false);
  c.padding = config.token("pad_token_id").value_or(-1);
  if (!config.has("head_dim")) config.need_divides("hidden_size", c.hidden, "num_attention_heads", c.heads);
  c.width = config.size_or("head_dim", c.hidden / c.heads);
  config.need_divides("num_attention_heads", c.heads, "num_key_value_heads", c.key_heads);
  config.need_divides("head_dim", c.width, "2", 2);
  need_plain_rotary(config);
  return c;
}

void declare_layer(Graph& g, const Llama& c, const std::string& layer) {
  int64_t queries = c.heads * c.width, keys = c.key_heads * c.width;
  declare_linear(g, layer + "self_attn.q_proj", c.hidden, queries, c.attention_bias);
  declare_linear(g, layer + "self_attn.k_proj", c.hidden, keys, c.attention_bias);
  declare_linear(g, layer + "self_attn.v_proj", c.hidden, keys, c.attention_bias);
  declare_linear(g, layer + "self_attn.o_proj", queries, c.hidden, c.attention_bias);
  if (c.mixture) {
    declare_mixture(g, layer + "mlp", *c.mixture);
  } else {
    declare_linear(g, layer + "mlp.gate_proj", c.hidden, c.inner, c.mlp_bias);
    declare_linear(g, layer + "mlp.up_proj", c.hidden, c.inner, c.mlp_bias);
    declare_linear(g, layer + "mlp.down_proj", c.inner, c.hidden, c.mlp_bias);
  }
  declare_norm(g, layer + "input_layernorm", c.hidden, false);
  declare_norm(g, layer + "post_attention_layernorm", c.hidden, false);
}

void declare(Graph& g, const Llama& c, StepSize size) {
  g.parameter("model.embed_tokens.weight", {c.vocabulary, c.hidden});
  for (int64_t k = 0; k < c.layers; ++k) declare_layer(g, c, fmt::format("model.layers.{}.", k));
  declare_norm(g, "model.norm", c.hidden, false);
  if (!c.tied) declare_linear(g, "lm_head", c.hidden, c.vocabulary, false);
  declare_rotary(g, "model.rotary_emb", c.width);
  g.batch("input_ids", {size.batch, size.seq}, DType::kInt64, c.vocabulary);
  g.batch("labels", {size.batch, size.seq}, DType::kInt64, c.vocabulary);
}

TensorId attend(Graph& g, const Llama& c, const Rotary& rotary, TensorId x) {
  auto scope = g.in("self_attn");
  TensorId query = to_heads(g, linear(g, "q_proj", x), c.width);
  TensorId key = to_heads(g, linear(g, "k_proj", x), c.width);
  TensorId value = to_heads(g, linear(g, "v_proj", x), c.width);
  auto [turned_query, turned_key] = rotate(g, rotary, query, key);
  double scale = std::pow(static_cast<double>(c.width), -0.5);
  TensorId out = attention(g, turned_query, turned_key, value, {.causal = true, .scale = scale});
  return linear(g, "o_proj", from_heads(g, out));
}

TensorId feed_forward(Graph& g, const Llama& c, TensorId x) {
  if (c.mixture) return mixture(g, *c.mixture, x);
  auto scope = g.in("mlp");
  TensorId gate = activation(g, "act_fn", c.activation, linear(g, "gate_proj", x));
  return linear(g, "down_proj", mul(g, gate, linear(g, "up_proj", x)));
}

TensorId layer(Graph& g, const Llama& c, const Rotary& rotary, int64_t index, TensorId x) {
  auto scope = g.in("layers", static_cast<int>(index));
  x = add(g, x, attend(g, c, rotary, rms_norm(g, "input_layernorm", x, c.eps)));
  return add(g, x, feed_forward(g, c, rms_norm(g, "post_attention_layernorm", x, c.eps)));
}

TensorId decoder(Graph& g, const Llama& c) {
  auto scope = g.in("model");
  TensorId ids = g.named("input_ids");
  TensorId x = embed(g, "embed_tokens", ids, c.padding);
  TensorId places = unsqueeze(g, add(g, arange(g, g.size(ids, 1)), 0), 0);
  Rotary angles = rotary(g, places);
  for (int64_t k = 0; k < c.layers; ++k) x = layer(g, c, angles, k, x);
  return rms_norm(g, "norm", x, c.eps);
}

Model build(const std::string& name, const Llama& c, StepSize size) {
  Graph g(name);
  declare(g, c, size);
  TensorId x = decoder(g, c);
  TensorId head = g.named(c.tied ? "model.embed_tokens.weight" : "lm_head.weight");
  TensorId loss = next_token_loss(g, linear_with(g, "lm_head", x, head), g.named("labels"));
  return g.finish(loss, differentiate(g, loss));
}

}  // namespace

Model build_llama(const Config& config, StepSize size) { return build("llama", read(config, kLlama), size); }

namespace {

void need_window(const Config& config, std::optional<int64_t> fallback, int64_t seq) {
  int64_t window =
      config.in().has("sliding_window") ? config.size_or("sliding_window", seq) : fallback.value_or(seq);
  if (seq > window)
    config.in().fail(fmt::format(
        "a sequence of {} needs the sliding window of {}, which has no builder; take a sequence up to "
        "{}, or {}",
        seq, window, window, config.capture_it()));
}

}  // namespace

Model build_mistral(const Config& config, StepSize size) {
  Llama c = read(config, kMistral);
  need_window(config, 4096, size.seq);
  return build("mistral", c, size);
}

Model build_mixtral(const Config& config, StepSize size) {
  Llama c = read(config, kMistral);
  c.eps = config.number("rms_norm_eps", 1e-5);
  need_window(config, std::nullopt, size.seq);
  config.need("output_router_logits", false);
  if (config.number("router_jitter_noise", 0) != 0)
    config.in()["router_jitter_noise"].fail(
        fmt::format("noise in the router has no builder, needs 0; {}", config.capture_it()));
  Mixture m{config.size("num_local_experts", 8), config.size("num_experts_per_tok", 2), c.hidden, c.inner};
  m.factor = config.number("capacity_factor", 0);
  m.activation = c.activation;
  if (m.factor < 0) config.in()["capacity_factor"].fail("needs to be 0 (drop no token) or more");
  if (m.chosen > m.experts)
    config.in().fail(
        fmt::format("num_experts_per_tok is {}, more than the {} experts there are", m.chosen, m.experts));
  c.mixture = m;
  return build("mixtral", c, size);
}

}  // namespace partita::model::build
