// mBART: an encoder and a decoder with learned positions and layer norms before each part of a layer.
#include <fmt/format.h>

#include <cmath>

#include "model/build/differentiate.h"
#include "model/build/family.h"
#include "model/build/layers.h"

namespace partita::model::build {
namespace {

// Positions start at 2 in the table: two rows were padding once.
constexpr int64_t kFirstPosition = 2;

struct Stack {
  const char* name;
  int64_t layers, heads, inner;
  bool decoder;
};

struct Mbart {
  Stack encoder, decoder;
  int64_t hidden, vocabulary, positions, padding;
  std::string activation;
  bool scaled;
};

Mbart read(const Config& config) {
  Mbart c;
  c.hidden = config.size("d_model", 1024);
  c.encoder = {"encoder", config.size("encoder_layers", 12), config.size("encoder_attention_heads", 16),
               config.size("encoder_ffn_dim", 4096), false};
  c.decoder = {"decoder", config.size("decoder_layers", 12), config.size("decoder_attention_heads", 16),
               config.size("decoder_ffn_dim", 4096), true};
  c.vocabulary = config.size("vocab_size", 50265);
  c.positions = config.size("max_position_embeddings", 1024);
  c.padding = config.token("pad_token_id").value_or(1);
  c.activation = config.activation("activation_function", "gelu");
  c.scaled = config.boolean("scale_embedding", false);
  config.need("tie_word_embeddings", true);
  config.need_divides("d_model", c.hidden, "encoder_attention_heads", c.encoder.heads);
  config.need_divides("d_model", c.hidden, "decoder_attention_heads", c.decoder.heads);
  return c;
}

void declare_attention(Graph& g, const Mbart& c, const std::string& name) {
  for (const char* part : {".k_proj", ".v_proj", ".q_proj", ".out_proj"})
    declare_linear(g, name + part, c.hidden, c.hidden, true);
}

void declare_stack(Graph& g, const Mbart& c, const Stack& stack) {
  std::string name = fmt::format("model.{}", stack.name);
  g.parameter(name + ".embed_positions.weight", {c.positions + kFirstPosition, c.hidden});
  for (int64_t k = 0; k < stack.layers; ++k) {
    std::string layer = fmt::format("{}.layers.{}.", name, k);
    declare_attention(g, c, layer + "self_attn");
    declare_norm(g, layer + "self_attn_layer_norm", c.hidden, true);
    if (stack.decoder) {
      declare_attention(g, c, layer + "encoder_attn");
      declare_norm(g, layer + "encoder_attn_layer_norm", c.hidden, true);
    }
    declare_linear(g, layer + "fc1", c.hidden, stack.inner, true);
    declare_linear(g, layer + "fc2", stack.inner, c.hidden, true);
    declare_norm(g, layer + "final_layer_norm", c.hidden, true);
  }
  declare_norm(g, name + ".layernorm_embedding", c.hidden, true);
  declare_norm(g, name + ".layer_norm", c.hidden, true);
}

void declare(Graph& g, const Mbart& c, StepSize size) {
  g.parameter("model.shared.weight", {c.vocabulary, c.hidden});
  declare_stack(g, c, c.encoder);
  declare_stack(g, c, c.decoder);
  g.buffer("final_logits_bias", {1, c.vocabulary}, DType::kFloat32);
  g.batch("input_ids", {size.batch, size.seq}, DType::kInt64, c.vocabulary);
  g.batch("labels", {size.batch, size.seq}, DType::kInt64, c.vocabulary);
}

TensorId fill_ignored(Graph& g, TensorId labels, int64_t padding) {
  TensorId ignored = compare(g, "aten.eq.Scalar", labels, -100);
  return g.call("aten.masked_fill.Scalar", {Arg::of(labels), Arg::of(ignored), Arg::of(padding)},
                {g.dims(labels), DType::kInt64});
}

// mBART has no start token: the last token that is no padding, the language, comes first.
TensorId decoder_inputs(Graph& g, const Mbart& c, TensorId labels) {
  TensorId tokens = fill_ignored(g, labels, c.padding);
  TensorId count = sum(g, compare(g, "aten.ne.Scalar", tokens, c.padding), {1}, false);
  TensorId last = unsqueeze(g, sub(g, count, 1), -1);
  TensorId language = g.call("aten.gather.default", {Arg::of(tokens), Arg::of(int64_t{1}), Arg::of(last)},
                             {g.dims(last), DType::kInt64});
  return cat(g, {language, slice(g, tokens, 1, 0, -1)}, 1);
}

TensorId embeddings(Graph& g, const Mbart& c, TensorId ids) {
  TensorId tokens, places;
  {
    auto scope = g.in("embed_tokens");
    double scale = c.scaled ? std::sqrt(static_cast<double>(c.hidden)) : 1.0;
    tokens = mul(g, embedding(g, g.named("model.shared.weight"), ids, c.padding), scale);
  }
  {
    auto scope = g.in("embed_positions");
    places = add(g, unsqueeze(g, arange(g, g.size(ids, 1)), 0), kFirstPosition);
    places = embedding(g, g.weight("weight"), places);
  }
  return norm(g, "layernorm_embedding", add(g, tokens, places), 1e-5);
}

TensorId attend(Graph& g, std::string_view name, int64_t heads, TensorId x, TensorId memory, bool causal) {
  auto scope = g.in(name);
  int64_t width = g.size(x, -1) / heads;
  TensorId query = to_heads(g, linear(g, "q_proj", x), width);
  TensorId key = linear(g, "k_proj", memory), value = linear(g, "v_proj", memory);
  TensorId key_heads = to_heads(g, key, width), value_heads = to_heads(g, value, width);
  double scale = std::pow(static_cast<double>(width), -0.5);
  TensorId out = attention(g, query, key_heads, value_heads, {.causal = causal, .scale = scale});
  return linear(g, "out_proj", from_heads(g, out));
}

TensorId layer(Graph& g, const Mbart& c, const Stack& stack, int64_t index, TensorId x, TensorId memory) {
  auto scope = g.in("layers", static_cast<int>(index));
  TensorId y = norm(g, "self_attn_layer_norm", x, 1e-5);
  x = add(g, x, attend(g, "self_attn", stack.heads, y, y, stack.decoder));
  if (stack.decoder) {
    TensorId z = norm(g, "encoder_attn_layer_norm", x, 1e-5);
    x = add(g, x, attend(g, "encoder_attn", stack.heads, z, memory, false));
  }
  TensorId wide = linear(g, "fc1", norm(g, "final_layer_norm", x, 1e-5));
  return add(g, x, linear(g, "fc2", activation(g, "activation_fn", c.activation, wide)));
}

TensorId run(Graph& g, const Mbart& c, const Stack& stack, TensorId ids, TensorId memory) {
  auto scope = g.in(fmt::format("model.{}", stack.name));
  TensorId x = embeddings(g, c, ids);
  for (int64_t k = 0; k < stack.layers; ++k) x = layer(g, c, stack, k, x, memory);
  return norm(g, "layer_norm", x, 1e-5);
}

}  // namespace

Model build_mbart(const Config& config, StepSize size) {
  Mbart c = read(config);
  need_positions(config, "max_position_embeddings", c.positions, size.seq);
  Graph g("mbart");
  declare(g, c, size);
  TensorId labels = g.named("labels");
  TensorId inputs = decoder_inputs(g, c, labels);
  TensorId memory = run(g, c, c.encoder, g.named("input_ids"), {});
  TensorId x = run(g, c, c.decoder, inputs, memory);
  TensorId logits = linear_with(g, "lm_head", x, g.named("model.shared.weight"));
  TensorId biased;
  {
    auto scope = g.in("loss");
    biased = add(g, logits, g.named("final_logits_bias"));
  }
  TensorId loss = token_loss(g, biased, labels);
  return g.finish(loss, differentiate(g, loss));
}

}  // namespace partita::model::build
