#include "model/build/layers.h"

#include <cmath>

#include "base/error.h"

namespace partita::model::build {
namespace {

// Google's BERT and GPT-2 wrote the tanh approximation out, and Hugging Face's NewGELUActivation still does.
TensorId gelu_new(Graph& g, TensorId x) {
  TensorId half = mul(g, x, 0.5);
  TensorId cubic = mul(g, power(g, x, 3.0), 0.044715);
  TensorId bent = unary(g, "aten.tanh.default", mul(g, add(g, x, cubic), std::sqrt(2.0 / M_PI)));
  return mul(g, half, add(g, bent, 1.0));
}

struct ActivationRow {
  const char* name;
  TensorId (*apply)(Graph& g, TensorId x);
};

constexpr ActivationRow kActivations[] = {
    {"gelu", [](Graph& g, TensorId x) { return gelu(g, x, false); }},
    {"gelu_new", gelu_new},
    {"gelu_pytorch_tanh", [](Graph& g, TensorId x) { return gelu(g, x, true); }},
    {"relu", [](Graph& g, TensorId x) { return unary(g, "aten.relu.default", x); }},
    {"silu", [](Graph& g, TensorId x) { return unary(g, "aten.silu.default", x); }},
    {"swish", [](Graph& g, TensorId x) { return unary(g, "aten.silu.default", x); }},
    {"tanh", [](Graph& g, TensorId x) { return unary(g, "aten.tanh.default", x); }},
};

int64_t rows_of(Graph& g, TensorId x) { return numel(g.shape(x)) / g.size(x, -1); }

// x weight^T + bias. PyTorch flattens first with a bias, and transposes first without.
TensorId product(Graph& g, TensorId x, TensorId weight, TensorId bias) {
  bool flat = g.shape(x).size() == 2;
  Shape rows = {rows_of(g, x), g.size(x, -1)}, sizes = g.shape(x);
  sizes.back() = g.size(weight, 0);
  TensorId turned = bias ? TensorId{} : t(g, weight);
  TensorId matrix = flat ? x : view(g, x, rows);
  TensorId out = bias ? addmm(g, bias, matrix, t(g, weight)) : mm(g, matrix, turned);
  return flat ? out : view(g, out, sizes);
}

}  // namespace

void declare_linear(Graph& g, const std::string& name, int64_t in, int64_t out, bool bias) {
  g.parameter(name + ".weight", {out, in});
  if (bias) g.parameter(name + ".bias", {out});
}

void declare_norm(Graph& g, const std::string& name, int64_t size, bool bias) {
  g.parameter(name + ".weight", {size});
  if (bias) g.parameter(name + ".bias", {size});
}

TensorId linear(Graph& g, std::string_view name, TensorId x) {
  auto scope = g.in(name);
  return product(g, x, g.weight("weight"), g.has_weight("bias") ? g.weight("bias") : TensorId{});
}

TensorId linear_with(Graph& g, std::string_view name, TensorId x, TensorId weight, TensorId bias) {
  auto scope = g.in(name);
  return product(g, x, weight, bias);
}

TensorId norm(Graph& g, std::string_view name, TensorId x, double eps) {
  auto scope = g.in(name);
  return layer_norm(g, x, g.weight("weight"), g.weight("bias"), eps);
}

TensorId rms_norm(Graph& g, std::string_view name, TensorId x, double eps) {
  auto scope = g.in(name);
  TensorId variance = mean(g, power(g, x, 2), {-1}, true);
  TensorId scale = unary(g, "aten.rsqrt.default", add(g, variance, eps));
  return mul(g, g.weight("weight"), mul(g, x, scale));
}

TensorId embed(Graph& g, std::string_view name, TensorId index, int64_t padding) {
  auto scope = g.in(name);
  return embedding(g, g.weight("weight"), index, padding);
}

TensorId to_heads(Graph& g, TensorId x, int64_t width) {
  return transpose(g, view(g, x, {g.size(x, 0), g.size(x, 1), -1, width}), 1, 2);
}

TensorId from_heads(Graph& g, TensorId x) {
  TensorId turned = transpose(g, x, 1, 2);
  return reshape(g, turned, {g.size(turned, 0), g.size(turned, 1), -1});
}

// PyTorch folds all but the last two dimensions into one for bmm, and spreads them out again.
TensorId matmul(Graph& g, TensorId a, TensorId b) {
  Shape out = g.shape(a);
  out.back() = g.size(b, -1);
  int64_t many = g.size(a, 0) * g.size(a, 1);
  TensorId first = reshape(g, expand(g, a, g.shape(a)), {many, g.size(a, 2), g.size(a, 3)});
  TensorId second = reshape(g, expand(g, b, g.shape(b)), {many, g.size(b, 2), g.size(b, 3)});
  return view(g, bmm(g, first, second), out);
}

TensorId biased_attention(Graph& g, TensorId query, TensorId key, TensorId value, double scale,
                          TensorId bias) {
  // The scale is split between both factors so that neither product overflows first.
  double root = std::sqrt(scale);
  TensorId scaled = binary(g, "aten.mul.Scalar", query, root);
  TensorId turned = binary(g, "aten.mul.Scalar", transpose(g, key, -2, -1), root);
  return matmul(g, softmax(g, add(g, matmul(g, scaled, turned), bias), -1), value);
}

TensorId patches(Graph& g, TensorId image, int64_t side) {
  auto scope = g.in("patch_embeddings");
  TensorId x;
  {
    auto inside = g.in("projection");
    x = convolution(g, image, g.weight("weight"), g.weight("bias"), side);
  }
  return transpose(g, view(g, x, {g.size(x, 0), g.size(x, 1), g.size(x, 2) * g.size(x, 3)}), 1, 2);
}

TensorId pad_front(Graph& g, TensorId x, int64_t value) {
  int64_t batch = g.size(x, 0), length = g.size(x, 1) + 1;
  return g.call("aten.constant_pad_nd.default",
                {Arg::of(x), Arg::list({1, 0}), Operand(static_cast<double>(value)).arg},
                {{{batch, length}, {length, 1}}, g[x].dtype});
}

TensorId activation(Graph& g, std::string_view module, std::string_view name, TensorId x) {
  auto scope = g.in(module);
  for (const ActivationRow& row : kActivations)
    if (row.name == name) return row.apply(g, x);
  bug(__FILE__, __LINE__, fmt::format("no activation is named {}", name));
}

std::vector<std::string> activation_names() {
  std::vector<std::string> names;
  for (const ActivationRow& row : kActivations) names.emplace_back(row.name);
  return names;
}

TensorId next_token_loss(Graph& g, TensorId logits, TensorId labels) {
  auto scope = g.in("loss");
  int64_t batch = g.size(labels, 0), seq = g.size(labels, 1);
  Dims padded{{batch, seq + 1}, {seq + 1, 1}};
  TensorId one_more =
      g.call("aten.constant_pad_nd.default", {Arg::of(labels), Arg::list({0, 1}), Operand(-100.0).arg},
             {padded, DType::kInt64});
  TensorId shifted = clone(g, slice(g, one_more, 1, 1, kToTheEnd), true);
  TensorId flat = view(g, logits, {-1, g.size(logits, -1)});
  return cross_entropy(g, flat, view(g, shifted, {-1}));
}

TensorId token_loss(Graph& g, TensorId logits, TensorId labels) {
  auto scope = g.in("loss");
  TensorId flat = view(g, logits, {-1, g.size(logits, -1)});
  return cross_entropy(g, flat, view(g, labels, {-1}));
}

}  // namespace partita::model::build
