// The Evoformer stack of AlphaFold 2 with a distogram head (Jumper et al. 2021, supplement, algorithms 6 to
// 15 and 30 to 32). Recycling runs the stack several times; only the last time is differentiated: three
// forwards, one backward.
#include <fmt/format.h>

#include <cmath>

#include "model/build/differentiate.h"
#include "model/build/family.h"
#include "model/build/layers.h"

namespace partita::model::build {
namespace {

constexpr double kEps = 1e-5;

struct Evoformer {
  int64_t blocks, msa, pair, msa_heads, pair_heads, head, outer, triangle, transition, sequences, recycles,
      bins;
  int64_t msa_features, target_features;
};

Evoformer read(const Config& config) {
  Evoformer c;
  c.blocks = config.size("num_blocks", 48);
  c.msa = config.size("c_m", 256);
  c.pair = config.size("c_z", 128);
  c.msa_heads = config.size("msa_heads", 8);
  c.pair_heads = config.size("pair_heads", 4);
  c.head = config.size("c_head", 32);
  c.outer = config.size("c_outer", 32);
  c.triangle = config.size("c_triangle", 128);
  c.transition = config.size("transition", 4);
  c.sequences = config.size("sequences", 128);
  c.recycles = config.size("recycles", 3);
  c.bins = config.size("bins", 64);
  c.msa_features = config.size("msa_features", 49);
  c.target_features = config.size("target_features", 22);
  return c;
}

void declare_attention(Graph& g, const Evoformer& c, const std::string& name, int64_t width, int64_t heads) {
  for (const char* part : {".q", ".k", ".v"}) declare_linear(g, name + part, width, heads * c.head, false);
  declare_linear(g, name + ".gate", width, heads * c.head, true);
  declare_linear(g, name + ".out", heads * c.head, width, true);
  declare_norm(g, name + ".norm", width, true);
}

void declare_transition(Graph& g, const Evoformer& c, const std::string& name, int64_t width) {
  declare_norm(g, name + ".norm", width, true);
  declare_linear(g, name + ".wide", width, c.transition * width, true);
  declare_linear(g, name + ".narrow", c.transition * width, width, true);
}

void declare_triangle(Graph& g, const Evoformer& c, const std::string& name) {
  declare_norm(g, name + ".norm", c.pair, true);
  for (const char* part : {".left", ".left_gate", ".right", ".right_gate"})
    declare_linear(g, name + part, c.pair, c.triangle, true);
  declare_norm(g, name + ".norm_out", c.triangle, true);
  declare_linear(g, name + ".out", c.triangle, c.pair, true);
  declare_linear(g, name + ".gate", c.pair, c.pair, true);
}

void declare_block(Graph& g, const Evoformer& c, const std::string& block) {
  declare_attention(g, c, block + "msa_row", c.msa, c.msa_heads);
  declare_norm(g, block + "msa_row.norm_pair", c.pair, true);
  declare_linear(g, block + "msa_row.bias", c.pair, c.msa_heads, false);
  declare_attention(g, c, block + "msa_column", c.msa, c.msa_heads);
  declare_transition(g, c, block + "msa_transition", c.msa);
  declare_norm(g, block + "outer.norm", c.msa, true);
  declare_linear(g, block + "outer.left", c.msa, c.outer, true);
  declare_linear(g, block + "outer.right", c.msa, c.outer, true);
  declare_linear(g, block + "outer.out", c.outer * c.outer, c.pair, true);
  for (const char* name : {"triangle_outgoing", "triangle_incoming"}) declare_triangle(g, c, block + name);
  for (const char* name : {"triangle_start", "triangle_end"}) {
    declare_attention(g, c, block + name, c.pair, c.pair_heads);
    declare_linear(g, block + name + ".bias", c.pair, c.pair_heads, false);
  }
  declare_transition(g, c, block + "pair_transition", c.pair);
}

void declare(Graph& g, const Evoformer& c, StepSize size) {
  declare_linear(g, "embed.msa", c.msa_features, c.msa, true);
  declare_linear(g, "embed.target", c.target_features, c.msa, true);
  declare_linear(g, "embed.left", c.target_features, c.pair, true);
  declare_linear(g, "embed.right", c.target_features, c.pair, true);
  declare_norm(g, "recycle.norm_msa", c.msa, true);
  declare_norm(g, "recycle.norm_pair", c.pair, true);
  for (int64_t k = 0; k < c.blocks; ++k) declare_block(g, c, fmt::format("blocks.{}.", k));
  declare_linear(g, "distogram", c.pair, c.bins, true);
  g.batch("msa", {size.batch, c.sequences, size.seq, c.msa_features}, DType::kFloat32);
  g.batch("target", {size.batch, size.seq, c.target_features}, DType::kFloat32);
  g.batch("labels", {size.batch, size.seq, size.seq}, DType::kInt64, c.bins);
}

TensorId sigmoid(Graph& g, TensorId x) { return unary(g, "aten.sigmoid.default", x); }

// Attention along dimension 2 of x [batch, many, length, width], each of `many` on its own, with a bias
// [batch, heads, length, length] that all of them share.
TensorId gated_attention(Graph& g, const Evoformer& c, TensorId x, TensorId bias) {
  Shape sizes = g.shape(x);
  int64_t batch = sizes[0], many = sizes[1], length = sizes[2];
  TensorId rows = view(g, x, {batch * many, length, sizes[3]});
  TensorId query = to_heads(g, linear(g, "q", rows), c.head);
  TensorId key = to_heads(g, linear(g, "k", rows), c.head);
  TensorId value = to_heads(g, linear(g, "v", rows), c.head);
  double scale = std::pow(static_cast<double>(c.head), -0.5);
  TensorId out;
  if (bias) {
    TensorId scores = matmul(g, binary(g, "aten.mul.Scalar", query, scale), transpose(g, key, -2, -1));
    Shape apart = {batch, many, g.size(query, 1), length, length};
    TensorId biased = add(g, view(g, scores, apart), unsqueeze(g, bias, 1));
    out = matmul(g, view(g, softmax(g, biased, -1), g.shape(scores)), value);
  } else {
    out = attention(g, query, key, value, {.scale = scale});
  }
  TensorId gated = mul(g, from_heads(g, out), sigmoid(g, linear(g, "gate", rows)));
  return view(g, linear(g, "out", gated), sizes);
}

// [batch, i, j, heads] -> [batch, heads, i, j]
TensorId bias_of(Graph& g, TensorId pair) { return permute(g, linear(g, "bias", pair), {0, 3, 1, 2}); }

TensorId msa_row(Graph& g, const Evoformer& c, TensorId msa, TensorId pair) {
  auto scope = g.in("msa_row");
  TensorId bias = bias_of(g, norm(g, "norm_pair", pair, kEps));
  return add(g, msa, gated_attention(g, c, norm(g, "norm", msa, kEps), bias));
}

TensorId msa_column(Graph& g, const Evoformer& c, TensorId msa) {
  auto scope = g.in("msa_column");
  TensorId columns = norm(g, "norm", transpose(g, msa, 1, 2), kEps);
  return add(g, msa, transpose(g, gated_attention(g, c, columns, {}), 1, 2));
}

TensorId transition(Graph& g, std::string_view name, TensorId x) {
  auto scope = g.in(name);
  TensorId wide = unary(g, "aten.relu.default", linear(g, "wide", norm(g, "norm", x, kEps)));
  return add(g, x, linear(g, "narrow", wide));
}

// The mean over sequences of all products of two projections, for every pair of residues.
TensorId outer_product_mean(Graph& g, const Evoformer& c, TensorId msa, TensorId pair) {
  auto scope = g.in("outer");
  TensorId x = norm(g, "norm", msa, kEps);
  int64_t batch = g.size(x, 0), sequences = g.size(x, 1), length = g.size(x, 2), wide = length * c.outer;
  TensorId left = permute(g, linear(g, "left", x), {0, 2, 3, 1});
  TensorId rows = reshape(g, left, {batch, wide, sequences});
  TensorId columns = view(g, linear(g, "right", x), {batch, sequences, wide});
  TensorId product = view(g, bmm(g, rows, columns), {batch, length, c.outer, length, c.outer});
  TensorId pairs =
      reshape(g, permute(g, product, {0, 1, 3, 2, 4}), {batch, length, length, c.outer * c.outer});
  return add(g, pair, linear(g, "out", div(g, pairs, sequences)));
}

// Outgoing edges: sum over k of left(i, k) right(j, k); incoming: left(k, i) right(k, j).
TensorId triangle(Graph& g, std::string_view name, TensorId pair, bool outgoing) {
  auto scope = g.in(name);
  TensorId x = norm(g, "norm", pair, kEps);
  TensorId left = mul(g, sigmoid(g, linear(g, "left_gate", x)), linear(g, "left", x));
  TensorId right = mul(g, sigmoid(g, linear(g, "right_gate", x)), linear(g, "right", x));
  TensorId rows =
      permute(g, left, outgoing ? std::vector<int64_t>{0, 3, 1, 2} : std::vector<int64_t>{0, 3, 2, 1});
  TensorId columns =
      permute(g, right, outgoing ? std::vector<int64_t>{0, 3, 2, 1} : std::vector<int64_t>{0, 3, 1, 2});
  TensorId product = permute(g, matmul(g, rows, columns), {0, 2, 3, 1});
  TensorId update = linear(g, "out", norm(g, "norm_out", product, kEps));
  return add(g, pair, mul(g, sigmoid(g, linear(g, "gate", x)), update));
}

TensorId triangle_attention(Graph& g, const Evoformer& c, std::string_view name, TensorId pair, bool ending) {
  auto scope = g.in(name);
  TensorId x = norm(g, "norm", ending ? transpose(g, pair, 1, 2) : pair, kEps);
  TensorId update = gated_attention(g, c, x, bias_of(g, x));
  return add(g, pair, ending ? transpose(g, update, 1, 2) : update);
}

struct State {
  TensorId msa, pair;
};

State block(Graph& g, const Evoformer& c, int64_t index, State s) {
  auto scope = g.in("blocks", static_cast<int>(index));
  s.msa = msa_column(g, c, msa_row(g, c, s.msa, s.pair));
  s.msa = transition(g, "msa_transition", s.msa);
  s.pair = outer_product_mean(g, c, s.msa, s.pair);
  s.pair = triangle(g, "triangle_outgoing", s.pair, true);
  s.pair = triangle(g, "triangle_incoming", s.pair, false);
  s.pair = triangle_attention(g, c, "triangle_start", s.pair, false);
  s.pair = triangle_attention(g, c, "triangle_end", s.pair, true);
  s.pair = transition(g, "pair_transition", s.pair);
  return s;
}

State embed_inputs(Graph& g) {
  auto scope = g.in("embed");
  TensorId target = g.named("target");
  TensorId msa = add(g, linear(g, "msa", g.named("msa")), unsqueeze(g, linear(g, "target", target), 1));
  TensorId left = unsqueeze(g, linear(g, "left", target), 2);
  return {msa, add(g, left, unsqueeze(g, linear(g, "right", target), 1))};
}

// The first sequence and the pairs of the last run are added; the first run adds zeros.
State recycle(Graph& g, const State& fresh, const State& last) {
  auto scope = g.in("recycle");
  TensorId row = last.msa ? select(g, last.msa, 1, 0)
                          : zeros(g, {g.size(fresh.msa, 0), g.size(fresh.msa, 2), g.size(fresh.msa, 3)});
  TensorId pair = last.pair ? last.pair : zeros(g, g.shape(fresh.pair));
  TensorId first = add(g, slice(g, fresh.msa, 1, 0, 1), unsqueeze(g, norm(g, "norm_msa", row, kEps), 1));
  TensorId msa = cat(g, {first, slice(g, fresh.msa, 1, 1, kToTheEnd)}, 1);
  return {msa, add(g, fresh.pair, norm(g, "norm_pair", pair, kEps))};
}

State stack(Graph& g, const Evoformer& c) {
  State last;
  for (int64_t run = 0; run < c.recycles; ++run) {
    State s = recycle(g, embed_inputs(g), last);
    for (int64_t k = 0; k < c.blocks; ++k) s = block(g, c, k, s);
    last = s;
    if (run + 1 < c.recycles) g.stop(s.msa), g.stop(s.pair);
  }
  return last;
}

}  // namespace

Model build_evoformer(const Config& config, StepSize size) {
  Evoformer c = read(config);
  Graph g("evoformer");
  declare(g, c, size);
  State s = stack(g, c);
  TensorId loss = token_loss(g, linear(g, "distogram", s.pair), g.named("labels"));
  return g.finish(loss, differentiate(g, loss));
}

}  // namespace partita::model::build
