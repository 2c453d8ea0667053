// BERT with its masked-token head: learned positions, layer norms after each half of a layer, tied decoder
// with a bias.
#include <fmt/format.h>

#include <cmath>

#include "model/build/differentiate.h"
#include "model/build/family.h"
#include "model/build/layers.h"

namespace partita::model::build {
namespace {

struct Bert {
  int64_t layers, hidden, heads, inner, vocabulary, positions, types, padding;
  double eps;
  std::string activation;
};

// transformers 4 had two more, with tables of distances inside attention; capture has none of them either.
void need_absolute_positions(const Config& config) {
  constexpr const char* kKey = "position_embedding_type";
  std::string type = config.text(kKey, "absolute");
  if (type != "absolute")
    config.in()[kKey].fail(fmt::format(
        "there is no builder for '{}' positions, needs absolute, as transformers 5 has it", type));
}

Bert read(const Config& config) {
  Bert c;
  c.layers = config.size("num_hidden_layers", 12);
  c.hidden = config.size("hidden_size", 768);
  c.heads = config.size("num_attention_heads", 12);
  c.inner = config.size("intermediate_size", 3072);
  c.vocabulary = config.size("vocab_size", 30522);
  c.positions = config.size("max_position_embeddings", 512);
  c.types = config.size("type_vocab_size", 2);
  c.padding = config.token("pad_token_id").value_or(0);
  c.eps = config.number("layer_norm_eps", 1e-12);
  c.activation = config.activation("hidden_act", "gelu");
  config.need("tie_word_embeddings", true);
  config.need("is_decoder", false);
  need_absolute_positions(config);
  config.need_divides("hidden_size", c.hidden, "num_attention_heads", c.heads);
  return c;
}

void declare_layer(Graph& g, const Bert& c, const std::string& layer) {
  for (const char* name : {"query", "key", "value"})
    declare_linear(g, layer + "attention.self." + name, c.hidden, c.hidden, true);
  declare_linear(g, layer + "attention.output.dense", c.hidden, c.hidden, true);
  declare_norm(g, layer + "attention.output.LayerNorm", c.hidden, true);
  declare_linear(g, layer + "intermediate.dense", c.hidden, c.inner, true);
  declare_linear(g, layer + "output.dense", c.inner, c.hidden, true);
  declare_norm(g, layer + "output.LayerNorm", c.hidden, true);
}

void declare(Graph& g, const Bert& c, StepSize size) {
  g.parameter("bert.embeddings.word_embeddings.weight", {c.vocabulary, c.hidden});
  g.parameter("bert.embeddings.position_embeddings.weight", {c.positions, c.hidden});
  g.parameter("bert.embeddings.token_type_embeddings.weight", {c.types, c.hidden});
  declare_norm(g, "bert.embeddings.LayerNorm", c.hidden, true);
  for (int64_t k = 0; k < c.layers; ++k) declare_layer(g, c, fmt::format("bert.encoder.layer.{}.", k));
  g.parameter("cls.predictions.bias", {c.vocabulary});
  declare_linear(g, "cls.predictions.transform.dense", c.hidden, c.hidden, true);
  declare_norm(g, "cls.predictions.transform.LayerNorm", c.hidden, true);
  g.buffer("bert.embeddings.position_ids", {1, c.positions}, DType::kInt64);
  g.buffer("bert.embeddings.token_type_ids", {1, c.positions}, DType::kInt64);
  g.batch("input_ids", {size.batch, size.seq}, DType::kInt64, c.vocabulary);
  g.batch("labels", {size.batch, size.seq}, DType::kInt64, c.vocabulary);
}

TensorId embeddings(Graph& g, const Bert& c) {
  auto scope = g.in("embeddings");
  TensorId ids = g.named("input_ids");
  int64_t batch = g.size(ids, 0), seq = g.size(ids, 1);
  TensorId places = g.weight("position_ids");
  if (seq < c.positions) places = slice(g, places, 1, 0, seq);
  TensorId types = expand(g, g.weight("token_type_ids"), {1, -1});
  TensorId chosen = g.call("aten.gather.default", {Arg::of(types), Arg::of(int64_t{1}), Arg::of(places)},
                           {{{1, seq}, {seq, 1}}, DType::kInt64});
  TensorId all = expand(g, chosen, {batch, seq});
  TensorId words = embed(g, "word_embeddings", ids, c.padding);
  TensorId x = add(g, words, embed(g, "token_type_embeddings", all));
  return norm(g, "LayerNorm", add(g, x, embed(g, "position_embeddings", places)), c.eps);
}

TensorId attend(Graph& g, const Bert& c, TensorId x) {
  auto scope = g.in("self");
  int64_t width = c.hidden / c.heads;
  TensorId query = to_heads(g, linear(g, "query", x), width);
  TensorId key = to_heads(g, linear(g, "key", x), width);
  TensorId value = to_heads(g, linear(g, "value", x), width);
  double scale = std::pow(static_cast<double>(width), -0.5);
  return from_heads(g, attention(g, query, key, value, {.scale = scale}));
}

// Dense, residual, norm: how both halves of a layer end.
TensorId close(Graph& g, const Bert& c, TensorId x, TensorId residual) {
  auto scope = g.in("output");
  TensorId dense = linear(g, "dense", x);
  return norm(g, "LayerNorm", add(g, dense, residual), c.eps);
}

TensorId layer(Graph& g, const Bert& c, int64_t index, TensorId x) {
  auto scope = g.in("layer", static_cast<int>(index));
  {
    auto inside = g.in("attention");
    x = close(g, c, attend(g, c, x), x);
  }
  TensorId wide;
  {
    auto inside = g.in("intermediate");
    wide = activation(g, "intermediate_act_fn", c.activation, linear(g, "dense", x));
  }
  return close(g, c, wide, x);
}

TensorId encoder(Graph& g, const Bert& c) {
  auto scope = g.in("bert");
  TensorId x = embeddings(g, c);
  auto inside = g.in("encoder");
  for (int64_t k = 0; k < c.layers; ++k) x = layer(g, c, k, x);
  return x;
}

TensorId predict(Graph& g, const Bert& c, TensorId x) {
  auto scope = g.in("cls.predictions");
  {
    auto inside = g.in("transform");
    x = norm(g, "LayerNorm", activation(g, "transform_act_fn", c.activation, linear(g, "dense", x)), c.eps);
  }
  return linear_with(g, "decoder", x, g.named("bert.embeddings.word_embeddings.weight"), g.weight("bias"));
}

}  // namespace

Model build_bert(const Config& config, StepSize size) {
  Bert c = read(config);
  need_positions(config, "max_position_embeddings", c.positions, size.seq);
  Graph g("bert");
  declare(g, c, size);
  TensorId loss = token_loss(g, predict(g, c, encoder(g, c)), g.named("labels"));
  return g.finish(loss, differentiate(g, loss));
}

}  // namespace partita::model::build
