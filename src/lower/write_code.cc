#include <algorithm>

#include "base/interrupt.h"
#include "base/names.h"
#include "lower/code_writer.h"
#include "lower/passes.h"
#include "model/row.h"
#include "model/seed.h"

namespace partita::lower {
namespace {

bool matches_any(const std::vector<std::string>& patterns, std::string_view op) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return matches(pattern, whole_op(op)); });
}

}  // namespace

CodeWriter::CodeWriter(const Model& model, const Plan& plan, const Transformed& transformed,
                       const Assigned& assigned, const Sites& sites, bool apart)
    : model_(model), plan_(plan), split_(transformed), assigned_(assigned), sites_(sites) {
  code_.sites.resize(sites.count());
  for (SiteCode& site : code_.sites) site.time = transformed.time_axis();
  have_.resize(sites.count(), std::vector<std::vector<Available>>(model.tensors.size()));
  summed_last_.resize(sites.count());
  producer_.assign(model.tensors.size(), -1);
  for (size_t i = 0; i < model.ops.size(); ++i)
    for (TensorId id : model.ops[i].outputs)
      if (id) producer_[id.value] = static_cast<int>(i);
  readers_.resize(model.tensors.size());
  for (size_t i = 0; i < model.ops.size(); ++i)
    for (TensorId id : inputs_of(model.ops[i])) readers_[id.value].push_back(i);
  find_wanted_after();
  find_dropped();
  weight_.assign(model.ops.size(), false);
  if (apart) find_weight_ops();
  find_through();
  for (auto [parameter, gradient] : model.gradients) parameter_of_[gradient] = parameter;
  loss_gradient_ = model::loss_gradient(model);
}

Code CodeWriter::write() {
  for (int stream = 0; stream < sites_.streams; ++stream) {
    for (size_t i = 0; i < model_.ops.size(); ++i) {
      check_interrupt();
      for (const auto& [segment, sites] : places_of(i, stream)) take(segment, sites, i);
    }
    run_pending();
  }
  for (int site : sites_.at(assigned_.loss_stage, 0))
    code_.sites[site].loss = want(site, kEpilogue, model_.loss, replicated());
  for (auto [buffer, value] : model_.buffers)
    for (int site : producer_[value.value] < 0 ? std::vector{0} : sites_.at(home_stage(value), 0))
      code_.sites[site].buffers.push_back({want(site, kEpilogue, value, replicated()), buffer});
  for (auto [parameter, gradient] : model_.gradients) fetch_gradient(parameter, gradient);
  for (auto [parameter, gradient] : model_.gradients) compute_late(parameter, gradient);
  for (auto [parameter, gradient] : model_.gradients) {
    complete(parameter, gradient);
    if (!plan_.optimizer.needs_norm()) finish(parameter);
  }
  if (plan_.optimizer.needs_norm()) {
    add_norm();
    for (auto [parameter, gradient] : model_.gradients) finish(parameter);
  }
  return std::move(code_);
}

// Where it runs: once on every site, in the segment that the others on that site come after.
std::map<Segment, std::vector<int>> CodeWriter::places_of(size_t i, int stream) const {
  std::map<int, Segment> of_site;
  for (int stage : assigned_.stages[i]) {
    Segment segment = segment_of(i, stage, stream);
    for (int site : sites_of(segment)) {
      auto [known, fresh] = of_site.try_emplace(site, segment);
      if (!fresh) known->second = std::min(known->second, segment);
    }
  }
  std::map<Segment, std::vector<int>> places;
  for (const auto& [site, segment] : of_site) places[segment].push_back(site);
  return places;
}

// Backward ops that lead to the gradient of one parameter and to no other stage.
void CodeWriter::find_weight_ops() {
  constexpr int kNobody = -1, kMany = -2;
  std::vector<int> leads(model_.tensors.size(), kNobody);  // to which gradient
  auto join = [](int& to, int gradient) { to = to == kNobody || to == gradient ? gradient : kMany; };
  for (auto [parameter, gradient] : model_.gradients) leads[gradient.value] = gradient.value;
  for (size_t i = model_.ops.size(); i-- > 0;) {
    const Op& op = model_.ops[i];
    if (!op.backward || assigned_.stages[i].empty()) continue;
    int to = kNobody;
    for (TensorId id : op.outputs)
      if (id && leads[id.value] != kNobody) join(to, leads[id.value]);
    weight_[i] = to >= 0 && assigned_.stages[i].size() == 1;
    for (TensorId id : inputs_of(op)) {
      int producer = producer_[id.value];
      bool near = producer >= 0 && assigned_.stages[producer] == assigned_.stages[i];
      join(leads[id.value], weight_[i] && near ? to : kMany);
    }
  }
}

// Values summed up over the micro-batches: those that something after the loop reads.
void CodeWriter::find_wanted_after() {
  wanted_after_.assign(model_.tensors.size(), false);
  wanted_after_[model_.loss.value] = true;
  for (auto [parameter, gradient] : model_.gradients) wanted_after_[gradient.value] = true;
  for (auto [buffer, value] : model_.buffers) wanted_after_[value.value] = true;
  for (size_t i = 0; i < model_.ops.size(); ++i)
    if (split_.ops[i].level == Level::kAfter)
      for (TensorId id : inputs_of(model_.ops[i])) wanted_after_[id.value] = true;
}

bool CodeWriter::read_apart(TensorId tensor) const {
  return std::any_of(readers_[tensor.value].begin(), readers_[tensor.value].end(), [&](size_t reader) {
    const std::vector<int>& stages = assigned_.stages[reader];
    return std::any_of(stages.begin(), stages.end(), [&](int stage) { return !sites_.spans(stage); });
  });
}

bool CodeWriter::made_together(TensorId tensor) const {
  const std::vector<int>& stages = assigned_.stages[producer_[tensor.value]];
  return std::any_of(stages.begin(), stages.end(), [&](int stage) { return sites_.spans(stage); });
}

// Outputs of a block that is run again in backward, but for those that ops outside of it read in forward,
// what the plan keeps, and what all devices make together: a stage of its own could not make it again.
void CodeWriter::find_dropped() {
  dropped_.assign(model_.tensors.size(), false);
  if (plan_.recompute.empty()) return;
  std::vector<int> block_of(model_.tensors.size(), -1);
  for (const Op& op : model_.ops) {
    if (op.backward) continue;
    int block = block_named(op.name);
    bool kept = block < 0 || matches_any(plan_.recompute[block].keep, op.name);
    for (TensorId id : inputs_of(op))
      if (block_of[id.value] != block) dropped_[id.value] = false;
    for (TensorId id : op.outputs) {
      if (!id) continue;
      block_of[id.value] = block;
      dropped_[id.value] = (!kept || (block >= 0 && read_in_addends(id))) && !wanted_after_[id.value] &&
                           !(made_together(id) && read_apart(id));
    }
  }
}

// What a loop sums up is kept as the sum: who reads the addend of one piece again needs it made again.
bool CodeWriter::read_in_addends(TensorId tensor) const {
  int loop = split_.ops[producer_[tensor.value]].loop;
  if (loop < 0) return false;
  for (size_t reader : readers_[tensor.value]) {
    std::vector<TensorId> ins = inputs_of(model_.ops[reader]);
    for (size_t k = 0; k < ins.size(); ++k)
      if (ins[k] == tensor && split_.ops[reader].need[k][split_.loop_axis[loop]].kind == AxisLayout::kPartial)
        return true;
  }
  return false;
}

int CodeWriter::block_named(const std::string& name) const {
  for (size_t b = 0; b < plan_.recompute.size(); ++b)
    if (matches_any(plan_.recompute[b].ops, name)) return static_cast<int>(b);
  return -1;
}

int CodeWriter::add_value(int site, Value value) {
  std::vector<Value>& values = code_.sites[site].values;
  if (cut_by_loop(value.layout)) {
    value.loop = place_.loop;
    value.piece = place_.piece;
  }
  if (value.storage < 0) value.storage = static_cast<int>(values.size());
  values.push_back(std::move(value));
  return static_cast<int>(values.size()) - 1;
}

// What a loop makes is settled when it is whole.
std::vector<int> CodeWriter::emit(int site, Segment segment, size_t i) {
  const Op& op = model_.ops[i];
  const SplitOp& split = split_.ops[i];
  CodeStep step{.op = OpId{static_cast<int32_t>(i)}};
  std::vector<TensorId> ins = inputs_of(op);
  for (size_t k = 0; k < ins.size(); ++k) step.in.push_back(want(site, segment, ins[k], split.need[k]));
  bool view = is_view(op);
  for (size_t o = 0; o < op.outputs.size(); ++o) {
    if (!op.outputs[o]) {
      step.out.push_back(-1);
      continue;
    }
    int storage = view ? value(site, step.in[0]).storage : -1;
    step.out.push_back(add_value(
        site, {.tensor = op.outputs[o], .layout = split.made[o], .made = segment, .storage = storage}));
    have(site, op.outputs[o]).push_back({step.out.back(), split.level == Level::kBefore && view});
  }
  std::vector<int> outs = step.out;
  push(site, segment, std::move(step));
  if (plan_.optimizer.precision.loss_scale > 0 && op.outputs[0] == loss_gradient_)
    push(site, segment, {.kind = InstrKind::kScale, .in = {outs[0]}, .out = {outs[0]}});
  if (split.level == Level::kInside && split.loop < 0)
    for (int out : outs)
      if (out >= 0) {
        share(site, segment, out);
        settle_output(site, segment, out);
      }
  return outs;
}

// A stage of its own cannot ask the others to take part in a conversion: what a stage on all devices leaves
// for it in pieces or addends is put together where it was made, by all of them.
void CodeWriter::share(int site, Segment segment, int id) {
  if (!segment.in_loop() || !sites_.spans(segment.stage)) return;
  TensorId tensor = value(site, id).tensor;
  Layout whole = value(site, id).layout;
  whole[0] = AxisLayout{};
  if (read_apart(tensor)) want(site, segment, tensor, whole);
}

// A gradient stored in pieces is reduced as soon as it is made; a sum over micro-batches starts to
// accumulate.
void CodeWriter::settle_output(int site, Segment segment, int id) {
  TensorId tensor = value(site, id).tensor;
  Layout layout = value(site, id).layout;
  bool accumulate = loops() && layout[time()].kind == AxisLayout::kPartial && wanted_after_[tensor.value];
  auto parameter = parameter_of_.find(tensor);
  std::optional<DType> as = sum_dtype(tensor);
  if (as && value(site, id).as != as && (accumulate || !loops())) id = cast(site, segment, id, *as);
  if (parameter != parameter_of_.end() && reduced_each_time(parameter->second) && (accumulate || !loops())) {
    Layout cut = split_.updated[parameter->second.value];
    cut[time()] = layout[time()];
    id = want(site, segment, tensor, cut, as);
    layout = cut;
  }
  if (!accumulate) return;
  layout[time()] = AxisLayout{};
  int sum = add_value(site, {.tensor = tensor, .layout = layout, .accumulator = true, .as = as});
  push(site, kPrologue, {.kind = InstrKind::kZeros, .out = {sum}});
  push(site, segment, {.kind = InstrKind::kAdd, .in = {sum, id}, .out = {sum}});
  have(site, tensor).push_back({sum, false});
}

bool CodeWriter::reduced_each_time(TensorId parameter) const {
  return std::any_of(plan_.store.begin(), plan_.store.end(), [&](const StoreRule& rule) {
    return rule.reduce == "each" && rule.what != "state" && matches(rule.params, model_[parameter].name);
  });
}

// In half precision gradients are summed up in float32, or what the plan says.
std::optional<DType> CodeWriter::sum_dtype(TensorId tensor) const {
  if (!parameter_of_.contains(tensor)) return std::nullopt;
  DType own = model_[tensor].dtype;
  std::optional<DType> role = plan_.optimizer.precision.grad;
  bool summed = loops() || plan_.splits();
  if (!role && summed && dtype_bytes(own) < dtype_bytes(DType::kFloat32)) role = DType::kFloat32;
  DType wide = widened(own, role);
  return wide == own ? std::nullopt : std::optional(wide);
}

Code write_code(const Model& model, const Plan& plan, const Ordered& ordered) {
  return CodeWriter(model, plan, ordered.parts.split, ordered.parts.assigned, ordered.sites, ordered.apart())
      .write();
}

std::vector<Transfer> sent_from(const Code& code, int site) {
  std::vector<Transfer> sent;
  for (const Transfer& transfer : code.transfers)
    if (transfer.from_site == site) sent.push_back(transfer);
  return sent;
}

}  // namespace partita::lower
