#include "model/build/rotary.h"

#include <algorithm>

#include "base/error.h"

namespace partita::model::build {
namespace {

// (a, b) -> (-b, a) for the two halves of the last dimension.
TensorId turned_half(Graph& g, TensorId x) {
  int64_t last = static_cast<int64_t>(g.shape(x).size()) - 1, half = g.size(x, -1) / 2;
  TensorId first = slice(g, x, last, 0, half);
  TensorId second = slice(g, x, last, half, kToTheEnd);
  return cat(g, {unary(g, "aten.neg.default", second), first}, -1);
}

TensorId turn(Graph& g, const Rotary& rotary, TensorId x) {
  TensorId straight = mul(g, x, rotary.cos);
  return add(g, straight, mul(g, turned_half(g, x), rotary.sin));
}

void need_whole_width(const JsonIn& rope, const Config& config) {
  constexpr const char* kShare = "partial_rotary_factor";
  if (rope.has(kShare) && rope[kShare].number() != 1)
    rope[kShare].fail(
        fmt::format("positions on a part of the width have no builder, needs 1; {}", config.capture_it()));
}

}  // namespace

void declare_rotary(Graph& g, const std::string& module, int64_t width) {
  g.buffer(module + ".inv_freq", {width / 2}, DType::kFloat32);
  g.buffer(module + ".original_inv_freq", {width / 2}, DType::kFloat32);
}

Rotary rotary(Graph& g, TensorId places) {
  auto scope = g.in("rotary_emb");
  TensorId column = to_dtype(g, unsqueeze(g, places, 2), DType::kFloat32);
  TensorId half = mul(g, column, g.weight("inv_freq"));
  TensorId angles = cat(g, {half, half}, -1);
  TensorId cos = mul(g, unary(g, "aten.cos.default", angles), 1.0);
  return {cos, mul(g, unary(g, "aten.sin.default", angles), 1.0)};
}

std::pair<TensorId, TensorId> rotate(Graph& g, const Rotary& rotary, TensorId query, TensorId key) {
  TensorId cos = unsqueeze(g, rotary.cos, 1);
  Rotary spread{cos, unsqueeze(g, rotary.sin, 1)};
  TensorId turned = turn(g, spread, query);
  return {turned, turn(g, spread, key)};
}

void need_plain_rotary(const Config& config) {
  const std::vector<std::string> plain = {"default", "linear", "dynamic", "llama3"};
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (!config.has(key)) continue;
    JsonIn rope = config.in()[key];
    need_whole_width(rope, config);
    const char* kind = rope.has("rope_type") ? "rope_type" : "type";
    if (!rope.has(kind)) continue;
    std::string type = rope[kind].text();
    if (std::find(plain.begin(), plain.end(), type) == plain.end())
      rope[kind].fail(fmt::format("there is no builder for '{}' positions, needs one of {}; or {}", type,
                                  fmt::join(plain, ", "), config.capture_it()));
  }
}

}  // namespace partita::model::build
