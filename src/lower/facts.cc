// Everything here is a function of model, plan and order alone: what the code of a site looks like so far
// never changes an answer. Writing code then has one thing to remember, the code itself (draft.h).
#include "lower/facts.h"

#include <algorithm>

#include "base/names.h"
#include "model/row.h"
#include "model/seed.h"

namespace partita::lower {
namespace {

bool matches_any(const std::vector<std::string>& patterns, std::string_view op) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return matches(pattern, whole_op(op)); });
}

std::vector<int> find_producers(const Model& model) {
  std::vector<int> producer(model.tensors.size(), -1);
  for (size_t i = 0; i < model.ops.size(); ++i)
    for (TensorId id : model.ops[i].outputs)
      if (id) producer[id.value] = static_cast<int>(i);
  return producer;
}

std::vector<std::vector<size_t>> find_readers(const Model& model) {
  std::vector<std::vector<size_t>> readers(model.tensors.size());
  for (size_t i = 0; i < model.ops.size(); ++i)
    for (TensorId id : inputs_of(model.ops[i])) readers[id.value].push_back(i);
  return readers;
}

std::vector<bool> find_wanted_after(const Model& model, const Transformed& split) {
  std::vector<bool> wanted(model.tensors.size(), false);
  wanted[model.loss.value] = true;
  for (auto [parameter, gradient] : model.gradients) wanted[gradient.value] = true;
  for (auto [buffer, value] : model.buffers) wanted[value.value] = true;
  for (size_t i = 0; i < model.ops.size(); ++i)
    if (split.ops[i].level == Level::kAfter)
      for (TensorId id : inputs_of(model.ops[i])) wanted[id.value] = true;
  return wanted;
}

// Backward ops that lead to the gradient of one parameter and to no other stage.
std::vector<bool> find_weight_ops(const Facts& facts) {
  const Model& model = facts.model;
  const std::vector<std::vector<int>>& stages = facts.assigned.stages;
  constexpr int kNobody = -1, kMany = -2;
  std::vector<bool> weight(model.ops.size(), false);
  std::vector<int> leads(model.tensors.size(), kNobody);  // to which gradient
  auto join = [](int& to, int gradient) { to = to == kNobody || to == gradient ? gradient : kMany; };
  for (auto [parameter, gradient] : model.gradients) leads[gradient.value] = gradient.value;
  for (size_t i = model.ops.size(); i-- > 0;) {
    const Op& op = model.ops[i];
    if (!op.backward || stages[i].empty()) continue;
    int to = kNobody;
    for (TensorId id : op.outputs)
      if (id && leads[id.value] != kNobody) join(to, leads[id.value]);
    weight[i] = to >= 0 && stages[i].size() == 1;
    for (TensorId id : inputs_of(op)) {
      int producer = facts.producer[id.value];
      bool near = producer >= 0 && stages[producer] == stages[i];
      join(leads[id.value], weight[i] && near ? to : kMany);
    }
  }
  return weight;
}

// Backward can follow forward at once only where the loss is made; elsewhere it waits for other stages. What
// reads a gradient that no piece makes alone (that of a softmax over all tokens, in pieces of tokens) waits
// for backward too.
std::vector<bool> find_through(const Facts& facts) {
  const Model& model = facts.model;
  std::vector<bool> through(model.ops.size(), false);
  auto at_once = [&](TensorId id) {
    int producer = facts.producer[id.value];
    if (producer < 0 || facts.split.ops[producer].level != Level::kInside) return true;
    return !model.ops[producer].backward || through[producer];
  };
  for (size_t i = 0; i < model.ops.size(); ++i) {
    int loop = facts.split.ops[i].loop;
    if (!model.ops[i].backward || loop < 0 || !facts.plan.loops[loop].through) continue;
    std::vector<TensorId> ins = inputs_of(model.ops[i]);
    through[i] = facts.assigned.stages[i] == std::vector{facts.assigned.loss_stage} &&
                 std::all_of(ins.begin(), ins.end(), at_once);
  }
  return through;
}

/// Is it made by a stage on all devices?
bool made_together(const Facts& facts, TensorId tensor) {
  const std::vector<int>& stages = facts.assigned.stages[facts.producer[tensor.value]];
  return std::any_of(stages.begin(), stages.end(), [&](int stage) { return facts.sites.spans(stage); });
}

// What a loop sums up is saved as the sum: who reads the partial of one piece again needs it made again.
bool read_as_partial(const Facts& facts, TensorId tensor) {
  int loop = facts.split.ops[facts.producer[tensor.value]].loop;
  if (loop < 0) return false;
  for (size_t reader : facts.readers[tensor.value]) {
    std::vector<TensorId> ins = inputs_of(facts.model.ops[reader]);
    for (size_t k = 0; k < ins.size(); ++k) {
      const Layout& need = facts.split.ops[reader].need[k];
      if (ins[k] == tensor && need[facts.split.loop_axis[loop]].kind == AxisLayout::kPartial) return true;
    }
  }
  return false;
}

int block_named(const Plan& plan, const std::string& name) {
  for (size_t b = 0; b < plan.recompute.size(); ++b)
    if (matches_any(plan.recompute[b].ops, name)) return static_cast<int>(b);
  return -1;
}

// Outputs of a block that is recomputed in backward, but for those that ops outside of it read in forward,
// what the plan keeps, and what all devices make together: a stage of its own could not make it again.
std::vector<bool> find_recomputed(const Facts& facts) {
  const Model& model = facts.model;
  const Plan& plan = facts.plan;
  std::vector<bool> recomputed(model.tensors.size(), false);
  if (plan.recompute.empty()) return recomputed;
  std::vector<int> block_of(model.tensors.size(), -1);
  for (const Op& op : model.ops) {
    if (op.backward) continue;
    int block = block_named(plan, op.name);
    bool kept = block < 0 || matches_any(plan.recompute[block].keep, op.name);
    for (TensorId id : inputs_of(op))
      if (block_of[id.value] != block) recomputed[id.value] = false;
    for (TensorId id : op.outputs) {
      if (!id) continue;
      block_of[id.value] = block;
      recomputed[id.value] = (!kept || (block >= 0 && read_as_partial(facts, id))) &&
                             !facts.wanted_after[id.value] &&
                             !(made_together(facts, id) && facts.read_apart(id));
    }
  }
  return recomputed;
}

}  // namespace

Segment Facts::segment_of(size_t op, int stage, int stream) const {
  if (!model.ops[op].backward) return {Segment::kForward, stage, stream};
  return {weight[op] ? Segment::kWeight : Segment::kBackward, stage, stream};
}

int Facts::home_stage(TensorId tensor) const {
  const std::vector<int>& stages = assigned.stages[producer[tensor.value]];
  return stages.empty() ? 0 : stages.front();
}

bool Facts::is_home(int site, TensorId tensor, int stream) const {
  int from = home(tensor, stream);
  return from == site || from == Sites::kAll;
}

const Layout& Facts::made_of(TensorId tensor) const {
  const Op& op = model.ops[producer[tensor.value]];
  size_t o = std::find(op.outputs.begin(), op.outputs.end(), tensor) - op.outputs.begin();
  return split.ops[producer[tensor.value]].made[o];
}

bool Facts::read_apart(TensorId tensor) const {
  return std::any_of(readers[tensor.value].begin(), readers[tensor.value].end(), [&](size_t reader) {
    const std::vector<int>& stages = assigned.stages[reader];
    return std::any_of(stages.begin(), stages.end(), [&](int stage) { return !sites.spans(stage); });
  });
}

bool Facts::recomputed_in(int site, const Segment& segment, TensorId tensor) const {
  return recomputed[tensor.value] && segment.backward() && is_home(site, tensor, segment.stream);
}

bool Facts::reduced_each_time(TensorId parameter) const {
  return std::any_of(plan.store.begin(), plan.store.end(), [&](const StoreRule& rule) {
    return rule.reduce == "each" && rule.what != "state" && matches(rule.params, model[parameter].name);
  });
}

// In half precision gradients are summed up in float32, or what the plan says.
std::optional<DType> Facts::sum_dtype(TensorId tensor) const {
  if (!parameter_of.contains(tensor)) return std::nullopt;
  DType own = model[tensor].dtype;
  std::optional<DType> role = plan.optimizer.precision.grad;
  bool summed = many_microbatches() || plan.splits();
  if (!role && summed && dtype_bytes(own) < dtype_bytes(DType::kFloat32)) role = DType::kFloat32;
  DType wide = widened(own, role);
  return wide == own ? std::nullopt : std::optional(wide);
}

Facts find_facts(const Model& model, const Plan& plan, const Ordered& ordered) {
  Facts facts{.model = model,
              .plan = plan,
              .split = ordered.parts.split,
              .assigned = ordered.parts.assigned,
              .sites = ordered.sites,
              .producer = find_producers(model),
              .readers = find_readers(model),
              .weight = std::vector<bool>(model.ops.size(), false),
              .wanted_after = find_wanted_after(model, ordered.parts.split),
              .loss_gradient = model::loss_gradient(model)};
  for (auto [parameter, gradient] : model.gradients) facts.parameter_of[gradient] = parameter;
  if (ordered.apart()) facts.weight = find_weight_ops(facts);
  facts.through = find_through(facts);
  facts.recomputed = find_recomputed(facts);
  return facts;
}

}  // namespace partita::lower
