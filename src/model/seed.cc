#include "model/seed.h"

#include <fmt/format.h>

#include <algorithm>

#include "model/row.h"

namespace partita::model {
namespace {

constexpr std::string_view kZeros[] = {"aten.zeros.default", "aten.zeros_like.default",
                                       "aten.new_zeros.default"};

bool makes_zeros(const Op& op) {
  if (std::find(std::begin(kZeros), std::end(kZeros), op.target) != std::end(kZeros)) return true;
  const Arg& value = argument(op, 1, "fill_value");
  bool number = value.kind == Arg::kFloat || value.kind == Arg::kInt;
  return op.target == "aten.full.default" && number && value.number == 0 && value.integer == 0;
}

/// By tensor: is it made of zeros and nothing else? An op that is linear in zeros makes zeros.
std::vector<bool> zeros_of(const Model& model) {
  std::vector<bool> zero(model.tensors.size());
  for (const Op& op : model.ops) {
    std::vector<TensorId> in = inputs_of(op);
    bool any = std::any_of(in.begin(), in.end(), [&](TensorId id) { return zero[id.value]; });
    bool made = makes_zeros(op);
    if (any && !made)
      for (const std::vector<int>& set : relate(view_of(model, op)).linear)
        made |= std::all_of(set.begin(), set.end(), [&](int k) { return zero[in[k].value]; });
    for (TensorId id : op.outputs)
      if (id && made) zero[id.value] = true;
  }
  return zero;
}

/// By tensor: does a gradient depend on it?
std::vector<bool> needed_for_gradients(const Model& model) {
  std::vector<bool> needed(model.tensors.size());
  for (const auto& [parameter, gradient] : model.gradients) needed[gradient.value] = true;
  for (auto op = model.ops.rbegin(); op != model.ops.rend(); ++op) {
    bool any = std::any_of(op->outputs.begin(), op->outputs.end(),
                           [&](TensorId id) { return id && needed[id.value]; });
    for (TensorId id : inputs_of(*op))
      if (any) needed[id.value] = true;
  }
  return needed;
}

// Functions f with f(s x) != s f(x): hooks may apply one to a gradient, what autograd derives does not (but
// for exp and log, in pairs, of logcumsumexp). A row says in which operands an op is linear for all values of
// the others, which is less than what is needed here: a gradient with zeros scattered into it is linear too.
constexpr std::string_view kBending[] = {
    "aten.clamp.default",    "aten.clamp.Tensor",        "aten.clamp_min.default",  "aten.clamp_max.default",
    "aten.hardtanh.default", "aten.tanh.default",        "aten.sigmoid.default",    "aten.erf.default",
    "aten.sin.default",      "aten.cos.default",         "aten.sqrt.default",       "aten.rsqrt.default",
    "aten.sign.default",     "aten.sgn.default",         "aten.round.default",      "aten.floor.default",
    "aten.ceil.default",     "aten.trunc.default",       "aten.gelu.default",       "aten.silu.default",
    "aten.softplus.default", "aten.reciprocal.default",  "aten.nan_to_num.default", "aten.pow.Tensor_Scalar",
    "aten._softmax.default", "aten._log_softmax.default"};

bool bends(const Op& op) {
  return std::find(std::begin(kBending), std::end(kBending), op.target) != std::end(kBending);
}

/// The first op on the way from `seed` to a gradient that bends what comes from there; null: none.
const Op* bending(const Model& model, TensorId seed) {
  std::vector<bool> from = computed_from(model, seed), needed = needed_for_gradients(model);
  for (const Op& op : model.ops)
    if (bends(op) && needed[op.outputs[0].value])
      if (TensorId in = argument(op, 0, "self").tensor; in && from[in.value]) return &op;
  return nullptr;
}

}  // namespace

bool may_make_seed(const Model& model, const Op& op) {
  if (!op.backward || op.outputs.size() != 1 || !op.outputs[0]) return false;
  const Tensor& made = model[op.outputs[0]];
  if (op.target == "aten.ones_like.default") return argument(op, 0, "self").tensor == model.loss;
  // As `decompose` writes it.
  return op.target == "aten.full.default" && made.shape.empty() && made.dtype == model[model.loss].dtype &&
         argument(op, 1, "fill_value").number == 1;
}

std::vector<bool> computed_from(const Model& model, TensorId tensor) {
  std::vector<bool> from(model.tensors.size());
  from[tensor.value] = true;
  for (const Op& op : model.ops) {
    std::vector<TensorId> in = inputs_of(op);
    if (std::none_of(in.begin(), in.end(), [&](TensorId id) { return from[id.value]; })) continue;
    if (const Row* row = find_row(op.target); row && row->shape_alone) continue;
    for (TensorId id : op.outputs)
      if (id) from[id.value] = true;
  }
  return from;
}

TensorId loss_gradient(const Model& model) {
  if (model.seed) return model.seed;
  std::vector<TensorId> ones;
  for (const Op& op : model.ops)
    if (may_make_seed(model, op)) ones.push_back(op.outputs[0]);
  if (ones.size() < 2) return ones.empty() ? TensorId{} : ones[0];
  std::vector<int64_t> counts;
  for (TensorId one : ones) {
    std::vector<bool> from = computed_from(model, one);
    counts.push_back(std::count_if(model.gradients.begin(), model.gradients.end(),
                                   [&](const auto& pair) { return from[pair.second.value]; }));
  }
  return ones[std::max_element(counts.begin(), counts.end()) - counts.begin()];
}

std::string unscalable(const Model& model) {
  TensorId seed = loss_gradient(model);
  if (!seed) return model.gradients.empty() ? "" : "no op makes the gradient of the loss";
  std::vector<bool> from = computed_from(model, seed);
  for (const auto& [parameter, gradient] : model.gradients)
    if (!from[gradient.value] && !zeros_of(model)[gradient.value])
      return fmt::format("the gradient of {} is not computed from {}, the gradient of the loss",
                         whole_name(model, parameter), model[seed].name);
  if (const Op* op = bending(model, seed))
    return fmt::format("{} ({}) is not linear in what is computed from {}, the gradient of the loss",
                       op->name, op->target, model[seed].name);
  for (const auto& [buffer, value] : model.buffers)
    if (from[value.value])
      return fmt::format("the new value of buffer {} is computed from {}, the gradient of the loss",
                         model[buffer].name, model[seed].name);
  return "";
}

}  // namespace partita::model
