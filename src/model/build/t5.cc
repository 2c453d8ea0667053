// T5: an encoder and a decoder with learned relative positions added to the scores, RMS norms and no biases.
#include <fmt/format.h>

#include <cmath>

#include "model/build/differentiate.h"
#include "model/build/family.h"
#include "model/build/layers.h"

namespace partita::model::build {
namespace {

struct T5 {
  int64_t encoder_layers, decoder_layers, hidden, heads, width, inner, vocabulary, buckets, distance, padding,
      start;
  double eps;
  std::string activation;
  bool gated, scaled;
};

T5 read(const Config& config) {
  T5 c;
  c.encoder_layers = config.size("num_layers", 6);
  c.decoder_layers = config.size_or("num_decoder_layers", c.encoder_layers);
  c.hidden = config.size("d_model", 512);
  c.heads = config.size("num_heads", 8);
  c.width = config.size("d_kv", 64);
  c.inner = config.size("d_ff", 2048);
  c.vocabulary = config.size("vocab_size", 32128);
  c.buckets = config.size("relative_attention_num_buckets", 32);
  c.distance = config.size("relative_attention_max_distance", 128);
  c.padding = config.token("pad_token_id").value_or(0);
  c.start = config.token("decoder_start_token_id").value_or(c.padding);
  c.eps = config.number("layer_norm_epsilon", 1e-6);
  // Hugging Face ties in any case; what older configs call untied only leaves the scale out.
  c.scaled = config.boolean("scale_decoder_outputs", config.boolean("tie_word_embeddings", true));
  std::string projection = config.text("feed_forward_proj", "relu");
  c.gated = projection == "gated-gelu";
  if (!c.gated && projection != "relu")
    config.in()["feed_forward_proj"].fail(fmt::format(
        "there is no builder for '{}', needs relu or gated-gelu; or {}", projection, config.capture_it()));
  c.activation = c.gated ? "gelu_new" : "relu";
  return c;
}

void declare_attention(Graph& g, const T5& c, const std::string& name, bool bias) {
  for (const char* part : {".q", ".k", ".v"})
    declare_linear(g, name + part, c.hidden, c.heads * c.width, false);
  declare_linear(g, name + ".o", c.heads * c.width, c.hidden, false);
  if (bias) g.parameter(name + ".relative_attention_bias.weight", {c.buckets, c.heads});
}

void declare_stack(Graph& g, const T5& c, const std::string& stack, int64_t layers, bool decoder) {
  for (int64_t k = 0; k < layers; ++k) {
    std::string block = fmt::format("{}.block.{}.layer.", stack, k);
    declare_attention(g, c, block + "0.SelfAttention", k == 0);
    declare_norm(g, block + "0.layer_norm", c.hidden, false);
    if (decoder) {
      declare_attention(g, c, block + "1.EncDecAttention", false);
      declare_norm(g, block + "1.layer_norm", c.hidden, false);
    }
    std::string last = block + (decoder ? "2" : "1");
    if (c.gated) {
      declare_linear(g, last + ".DenseReluDense.wi_0", c.hidden, c.inner, false);
      declare_linear(g, last + ".DenseReluDense.wi_1", c.hidden, c.inner, false);
    } else {
      declare_linear(g, last + ".DenseReluDense.wi", c.hidden, c.inner, false);
    }
    declare_linear(g, last + ".DenseReluDense.wo", c.inner, c.hidden, false);
    declare_norm(g, last + ".layer_norm", c.hidden, false);
  }
  declare_norm(g, stack + ".final_layer_norm", c.hidden, false);
}

void declare(Graph& g, const T5& c, StepSize size) {
  g.parameter("shared.weight", {c.vocabulary, c.hidden});
  declare_stack(g, c, "encoder", c.encoder_layers, false);
  declare_stack(g, c, "decoder", c.decoder_layers, true);
  g.batch("input_ids", {size.batch, size.seq}, DType::kInt64, c.vocabulary);
  g.batch("labels", {size.batch, size.seq}, DType::kInt64, c.vocabulary);
}

TensorId at_most(Graph& g, TensorId x, int64_t limit) {
  TensorId limits = g.call("aten.full_like.default", {Arg::of(x), Arg::of(limit)}, {g.dims(x), DType::kInt64},
                           {{"pin_memory", flag(false)}});
  return binary(g, "aten.minimum.default", x, limits);
}

// Small distances have a bucket each, larger ones share buckets that grow with the logarithm (T5,
// section 2.1).
TensorId bucket(Graph& g, const T5& c, TensorId distance, int64_t buckets) {
  int64_t exact = buckets / 2;
  TensorId is_small = compare(g, "aten.lt.Scalar", distance, exact);
  TensorId ratio = unary(g, "aten.log.default", div(g, to_dtype(g, distance, DType::kFloat32), exact));
  double range = std::log(static_cast<double>(c.distance) / static_cast<double>(exact));
  TensorId place = to_dtype(g, mul(g, div(g, ratio, range), buckets - exact), DType::kInt64);
  return where(g, is_small, distance, at_most(g, add(g, place, exact), buckets - 1));
}

// Buckets of key minus query position; an encoder looks both ways, so half of them are for keys that follow.
TensorId buckets_of(Graph& g, const T5& c, TensorId relative, bool decoder) {
  if (decoder) {
    TensorId none = g.call("aten.zeros_like.default", {Arg::of(relative)}, {g.dims(relative), DType::kInt64},
                           {{"pin_memory", flag(false)}});
    TensorId back = unary(g, "aten.neg.default", binary(g, "aten.minimum.default", relative, none));
    return add(g, bucket(g, c, back, c.buckets), 0);
  }
  TensorId follows = to_dtype(g, compare(g, "aten.gt.Scalar", relative, 0), DType::kInt64);
  TensorId base = add(g, mul(g, follows, c.buckets / 2), 0);
  return add(g, base, bucket(g, c, unary(g, "aten.abs.default", relative), c.buckets / 2));
}

TensorId position_bias(Graph& g, const T5& c, int64_t seq, bool decoder) {
  TensorId query = add(g, unsqueeze(g, arange(g, seq, true), 1), 0);
  TensorId key = unsqueeze(g, arange(g, seq, true), 0);
  TensorId chosen = buckets_of(g, c, sub(g, key, query), decoder);
  return unsqueeze(g, permute(g, embed(g, "relative_attention_bias", chosen), {2, 0, 1}), 0);
}

// Scores of keys that follow their query become the least number.
TensorId masked(Graph& g, TensorId bias, int64_t seq) {
  TensorId query = unsqueeze(g, arange(g, seq), 1);
  TensorId key = unsqueeze(g, arange(g, seq), 0);
  TensorId seen = view(g, compare(g, "aten.ge.Tensor", query, key), {1, 1, seq, seq});
  return where(g, seen, bias, scalar(g, -std::numeric_limits<float>::max()));
}

struct Projected {
  TensorId query, key, value;
};

Projected project(Graph& g, const T5& c, TensorId x, TensorId memory) {
  TensorId query = to_heads(g, linear(g, "q", x), c.width);
  TensorId key = to_heads(g, linear(g, "k", memory), c.width);
  return {query, key, to_heads(g, linear(g, "v", memory), c.width)};
}

// `bias` is made in the first layer of a stack and used in all.
TensorId self_attention(Graph& g, const T5& c, TensorId x, TensorId& bias, bool decoder) {
  auto scope = g.in("SelfAttention");
  Projected p = project(g, c, x, x);
  int64_t seq = g.size(x, 1);
  if (!bias) bias = position_bias(g, c, seq, decoder);
  TensorId scores = clone(g, decoder ? masked(g, bias, seq) : bias, true);
  return linear(g, "o", from_heads(g, biased_attention(g, p.query, p.key, p.value, 1.0, scores)));
}

TensorId cross_attention(Graph& g, const T5& c, TensorId x, TensorId memory, TensorId& mask) {
  auto scope = g.in("EncDecAttention");
  Projected p = project(g, c, x, memory);
  if (!mask) mask = zeros(g, {1, c.heads, g.size(x, 1), g.size(memory, 1)});
  return linear(g, "o", from_heads(g, attention(g, p.query, p.key, p.value, {.scale = 1, .mask = mask})));
}

TensorId feed_forward(Graph& g, const T5& c, TensorId x) {
  auto scope = g.in("DenseReluDense");
  if (!c.gated) return linear(g, "wo", activation(g, "act", c.activation, linear(g, "wi", x)));
  TensorId gate = activation(g, "act", c.activation, linear(g, "wi_0", x));
  return linear(g, "wo", mul(g, gate, linear(g, "wi_1", x)));
}

// Norm, `inner`, residual: every layer of a block.
template <class Inner>
TensorId residual(Graph& g, const T5& c, int index, TensorId x, const Inner& inner) {
  auto scope = g.in("layer", index);
  return add(g, x, inner(rms_norm(g, "layer_norm", x, c.eps)));
}

TensorId stack(Graph& g, const T5& c, int64_t layers, TensorId ids, TensorId memory) {
  TensorId x, bias, mask;
  {
    auto scope = g.in("embed_tokens");
    x = embedding(g, g.named("shared.weight"), ids);
  }
  bool decoder = static_cast<bool>(memory);
  for (int64_t k = 0; k < layers; ++k) {
    auto scope = g.in("block", static_cast<int>(k));
    x = residual(g, c, 0, x, [&](TensorId y) { return self_attention(g, c, y, bias, decoder); });
    if (decoder) x = residual(g, c, 1, x, [&](TensorId y) { return cross_attention(g, c, y, memory, mask); });
    x = residual(g, c, decoder ? 2 : 1, x, [&](TensorId y) { return feed_forward(g, c, y); });
  }
  return rms_norm(g, "final_layer_norm", x, c.eps);
}

// The labels one place on, behind the start token; ignored labels become padding.
TensorId decoder_inputs(Graph& g, const T5& c, TensorId labels) {
  TensorId kept = slice(g, labels, 1, 0, -1);
  TensorId shifted = pad_front(g, kept, c.start);
  TensorId ignored = compare(g, "aten.eq.Scalar", shifted, -100);
  return g.call("aten.masked_fill.Scalar", {Arg::of(shifted), Arg::of(ignored), Arg::of(c.padding)},
                {g.dims(shifted), DType::kInt64});
}

TensorId logits(Graph& g, const T5& c, TensorId x) {
  TensorId scaled = c.scaled ? mul(g, x, std::pow(static_cast<double>(c.hidden), -0.5)) : x;
  return linear_with(g, "lm_head", scaled, g.named("shared.weight"));
}

}  // namespace

Model build_t5(const Config& config, StepSize size) {
  T5 c = read(config);
  Graph g("t5");
  declare(g, c, size);
  TensorId memory, x, labels = g.named("labels");
  {
    auto scope = g.in("encoder");
    memory = stack(g, c, c.encoder_layers, g.named("input_ids"), {});
  }
  TensorId inputs = decoder_inputs(g, c, labels);
  {
    auto scope = g.in("decoder");
    x = stack(g, c, c.decoder_layers, inputs, memory);
  }
  TensorId loss = token_loss(g, logits(g, c, x), labels);
  return g.finish(loss, differentiate(g, loss));
}

}  // namespace partita::model::build
