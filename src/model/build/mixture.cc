#include "model/build/mixture.h"

#include <algorithm>
#include <cmath>

#include "model/build/layers.h"

namespace partita::model::build {
namespace {

constexpr DType kIndex = DType::kInt64;

Made dense(Shape shape, DType dtype) {
  Shape strides = contiguous_strides(shape);
  return {{std::move(shape), std::move(strides)}, dtype};
}

/// Which experts a token goes to, and with which weight: [tokens, chosen] each.
struct Routed {
  TensorId expert, weight;
};

Routed route(Graph& g, const Mixture& c, TensorId x) {
  auto scope = g.in("gate");
  TensorId logits = mm(g, x, t(g, g.weight("weight")));
  TensorId share = g.call("aten._softmax.default", {Arg::of(logits), Arg::of(int64_t{-1}), flag(false)},
                          {g.dims(logits), g[x].dtype});
  Shape sizes = {g.size(x, 0), c.chosen};
  std::vector<TensorId> best =
      g.call_many("aten.topk.default", {Arg::of(share), Arg::of(c.chosen), Arg::of(int64_t{-1})},
                  {dense(sizes, g[x].dtype), dense(sizes, kIndex)});
  return {best[1], div(g, best[0], sum(g, best[0], {-1}, true))};
}

/// Every (token, choice) has a slot of its expert, or the spare one behind all slots where the expert is
/// full.
TensorId slots(Graph& g, const Mixture& c, TensorId expert, int64_t room) {
  TensorId column = unsqueeze(g, expert, 1);
  TensorId hit = compare(g, "aten.eq.Tensor", column, unsqueeze(g, arange(g, c.experts), 0));
  TensorId ones = to_dtype(g, hit, kIndex);
  TensorId count =
      g.call("aten.cumsum.default", {Arg::of(ones), Arg::of(int64_t{0})}, {g.dims(ones), kIndex});
  TensorId mine = g.call("aten.gather.default", {Arg::of(count), Arg::of(int64_t{1}), Arg::of(column)},
                         dense(g.shape(column), kIndex));
  TensorId place = sub(g, view(g, mine, g.shape(expert)), 1);
  TensorId slot = add(g, mul(g, expert, room), place);
  TensorId spare = g.call("aten.full_like.default", {Arg::of(slot), Arg::of(c.experts * room)},
                          {g.dims(slot), kIndex}, {{"pin_memory", flag(false)}});
  return where(g, compare(g, "aten.lt.Scalar", place, room), slot, spare);
}

/// The token in every slot; one past the last where a slot is empty.
TensorId tokens_of(Graph& g, const Mixture& c, TensorId slot, int64_t tokens, int64_t room) {
  TensorId column = unsqueeze(g, arange(g, tokens), 1);
  TensorId token = reshape(g, expand(g, column, {tokens, c.chosen}), {-1});
  int64_t count = c.experts * room;
  TensorId none =
      g.call("aten.full.default", {Arg::list({count + 1}), Arg::of(tokens)}, dense({count + 1}, kIndex),
             {{"dtype", dtype_argument(kIndex)},
              {"device", setting(Arg::kDevice, "cpu")},
              {"pin_memory", flag(false)}});
  TensorId all =
      g.call("aten.scatter.src", {Arg::of(none), Arg::of(int64_t{0}), Arg::of(slot), Arg::of(token)},
             {g.dims(none), kIndex});
  return slice(g, all, 0, 0, count);
}

/// Rows by number; the number one past the last stands for a row of zeros.
TensorId rows_or_zero(Graph& g, TensorId rows, TensorId index) {
  return embedding(g, cat(g, {rows, zeros(g, {1, g.size(rows, 1)})}, 0), index);
}

TensorId run_experts(Graph& g, const Mixture& c, TensorId x) {
  TensorId wide = bmm(g, x, transpose(g, g.weight("gate_up_proj"), 1, 2));
  std::vector<TensorId> halves = split(g, wide, c.inner, 2);
  TensorId gated = mul(g, activation(g, "act_fn", c.activation, halves[0]), halves[1]);
  return bmm(g, gated, transpose(g, g.weight("down_proj"), 1, 2));
}

TensorId dispatch(Graph& g, const Mixture& c, TensorId x, const Routed& routed) {
  auto scope = g.in("experts");
  int64_t tokens = g.size(x, 0), room = capacity(c, tokens);
  TensorId slot = slots(g, c, view(g, routed.expert, {-1}), room);
  TensorId taken = rows_or_zero(g, x, tokens_of(g, c, slot, tokens, room));
  TensorId out = run_experts(g, c, view(g, taken, {c.experts, room, c.hidden}));
  TensorId back = rows_or_zero(g, view(g, out, {-1, c.hidden}), slot);
  TensorId weighted = mul(g, view(g, back, {tokens, c.chosen, c.hidden}), unsqueeze(g, routed.weight, 2));
  return sum(g, weighted, {1}, false);
}

}  // namespace

int64_t capacity(const Mixture& c, int64_t tokens) {
  if (c.factor == 0) return tokens;
  double even = static_cast<double>(tokens) * static_cast<double>(c.chosen) / static_cast<double>(c.experts);
  return std::clamp(static_cast<int64_t>(std::ceil(even * c.factor)), int64_t{1}, tokens);
}

void declare_mixture(Graph& g, const std::string& name, const Mixture& c) {
  g.parameter(name + ".gate.weight", {c.experts, c.hidden});
  g.parameter(name + ".experts.gate_up_proj", {c.experts, 2 * c.inner, c.hidden});
  g.parameter(name + ".experts.down_proj", {c.experts, c.hidden, c.inner});
}

TensorId mixture(Graph& g, const Mixture& c, TensorId x) {
  auto scope = g.in("mlp");
  TensorId flat = view(g, x, {-1, c.hidden});
  return view(g, dispatch(g, c, flat, route(g, c, flat)), g.shape(x));
}

}  // namespace partita::model::build
