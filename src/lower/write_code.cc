#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/names.h"
#include "lower/code.h"
#include "lower/reshard.h"
#include "model/row.h"

namespace partita {
namespace {

/// A value that later code of its stage may read.
struct Available {
  int value = -1;
  bool segment_only = false;  // a gathered weight or a view of one: made again where it is needed again
};

class CodeWriter {
 public:
  CodeWriter(const Model& model, const Plan& plan, const Transformed& transformed, const Assigned& assigned)
      : model_(model), plan_(plan), split_(transformed), assigned_(assigned) {
    code_.stages.resize(plan.stages.size());
    have_.resize(plan.stages.size(), std::vector<std::vector<Available>>(model.tensors.size()));
    producer_.assign(model.tensors.size(), -1);
    for (size_t i = 0; i < model.ops.size(); ++i)
      for (TensorId id : model.ops[i].outputs)
        if (id) producer_[id.value] = static_cast<int>(i);
    find_wanted_after();
    find_dropped();
    for (auto [parameter, gradient] : model.gradients) parameter_of_[gradient] = parameter;
  }

  Code write() {
    for (size_t i = 0; i < model_.ops.size(); ++i)
      for (int stage : assigned_.stages[i]) emit(stage, segment_of(i), i);
    StageCode& last = code_.stages[assigned_.loss_stage];
    last.loss = want(assigned_.loss_stage, Segment::kEpilogue, model_.loss, replicated());
    for (auto [buffer, value] : model_.buffers) {
      int stage = producer_[value.value] < 0 ? 0 : home(value);
      code_.stages[stage].buffers.push_back({want(stage, Segment::kEpilogue, value, replicated()), buffer});
    }
    for (auto [parameter, gradient] : model_.gradients) fetch_gradient(parameter, gradient);
    for (auto [parameter, gradient] : model_.gradients) compute_late(parameter, gradient);
    for (auto [parameter, gradient] : model_.gradients) finish(parameter, gradient);
    for (StageCode& stage : code_.stages) protect_in_place(model_, stage);
    return std::move(code_);
  }

 private:
  Layout replicated() const { return Layout(split_.axis_sizes.size()); }
  size_t time() const { return split_.time_axis(); }
  bool loops() const { return plan_.microbatches > 1; }
  Segment segment_of(size_t op) const {
    return model_.ops[op].backward ? Segment::kBackward : Segment::kForward;
  }
  int home(TensorId tensor) const {
    const std::vector<int>& stages = assigned_.stages[producer_[tensor.value]];
    return stages.empty() ? 0 : stages.front();
  }

  // Values summed up over the micro-batches: those that something after the loop reads.
  void find_wanted_after() {
    wanted_after_.assign(model_.tensors.size(), false);
    wanted_after_[model_.loss.value] = true;
    for (auto [parameter, gradient] : model_.gradients) wanted_after_[gradient.value] = true;
    for (auto [buffer, value] : model_.buffers) wanted_after_[value.value] = true;
    for (size_t i = 0; i < model_.ops.size(); ++i)
      if (split_.ops[i].level == Level::kAfter)
        for (TensorId id : inputs_of(model_.ops[i])) wanted_after_[id.value] = true;
  }

  // Outputs of a block that is run again in backward, but for those that ops outside of it read in forward.
  void find_dropped() {
    dropped_.assign(model_.tensors.size(), false);
    if (plan_.recompute.empty()) return;
    std::vector<int> block_of(model_.tensors.size(), -1);
    for (const Op& op : model_.ops) {
      if (op.backward) continue;
      int block = block_named(op.name);
      for (TensorId id : inputs_of(op))
        if (block_of[id.value] != block) dropped_[id.value] = false;
      for (TensorId id : op.outputs) {
        if (!id) continue;
        block_of[id.value] = block;
        dropped_[id.value] = block >= 0 && !wanted_after_[id.value];
      }
    }
  }

  int block_named(const std::string& name) const {
    for (size_t b = 0; b < plan_.recompute.size(); ++b)
      for (const std::string& pattern : plan_.recompute[b].ops)
        if (matches(pattern, name)) return static_cast<int>(b);
    return -1;
  }

  bool run_again(int stage, Segment segment, TensorId tensor) const {
    return dropped_[tensor.value] && segment == Segment::kBackward && home(tensor) == stage;
  }

  int add_value(int stage, Value value) {
    std::vector<Value>& values = code_.stages[stage].values;
    if (value.storage < 0) value.storage = static_cast<int>(values.size());
    values.push_back(std::move(value));
    return static_cast<int>(values.size()) - 1;
  }

  const Value& value(int stage, int id) const { return code_.stages[stage].values[id]; }

  void push(int stage, Segment segment, CodeStep step) {
    code_.stages[stage].segments[static_cast<int>(segment)].push_back(std::move(step));
  }

  std::vector<Available>& have(int stage, TensorId tensor) { return have_[stage][tensor.value]; }

  bool usable(int stage, const Available& one, Segment segment) const {
    const Value& v = value(stage, one.value);
    if (v.accumulator) return segment == Segment::kEpilogue;
    if (one.segment_only || run_again(stage, segment, v.tensor)) return v.made == segment;
    bool gone = loops() && segment == Segment::kEpilogue && !v.loaded &&
                (v.made == Segment::kForward || v.made == Segment::kBackward);
    return v.made <= segment && !gone;
  }

  void emit(int stage, Segment segment, size_t i) {
    const Op& op = model_.ops[i];
    const SplitOp& split = split_.ops[i];
    CodeStep step{.op = OpId{static_cast<int32_t>(i)}};
    std::vector<TensorId> ins = inputs_of(op);
    for (size_t k = 0; k < ins.size(); ++k) step.in.push_back(want(stage, segment, ins[k], split.need[k]));
    bool view = is_view(op);
    for (size_t o = 0; o < op.outputs.size(); ++o) {
      if (!op.outputs[o]) {
        step.out.push_back(-1);
        continue;
      }
      int storage = view ? value(stage, step.in[0]).storage : -1;
      step.out.push_back(add_value(
          stage, {.tensor = op.outputs[o], .layout = split.made[o], .made = segment, .storage = storage}));
      have(stage, op.outputs[o]).push_back({step.out.back(), split.level == Level::kBefore && view});
    }
    std::vector<int> outs = step.out;
    push(stage, segment, std::move(step));
    if (split.level != Level::kInside) return;
    for (int out : outs)
      if (out >= 0) settle_output(stage, segment, out);
  }

  // A gradient stored in pieces is reduced as soon as it is made; a sum over micro-batches starts to
  // accumulate.
  void settle_output(int stage, Segment segment, int id) {
    TensorId tensor = value(stage, id).tensor;
    Layout layout = value(stage, id).layout;
    bool accumulate = loops() && layout[time()].kind == AxisLayout::kPartial && wanted_after_[tensor.value];
    auto parameter = parameter_of_.find(tensor);
    if (parameter != parameter_of_.end() && reduced_each_time(parameter->second) &&
        (accumulate || !loops())) {
      Layout cut = split_.updated[parameter->second.value];
      cut[time()] = layout[time()];
      id = want(stage, segment, tensor, cut);
      layout = cut;
    }
    if (!accumulate) return;
    layout[time()] = AxisLayout{};
    int sum = add_value(stage, {.tensor = tensor, .layout = layout, .accumulator = true});
    push(stage, Segment::kPrologue, {.kind = InstrKind::kZeros, .out = {sum}});
    push(stage, segment, {.kind = InstrKind::kAdd, .in = {sum, id}, .out = {sum}});
    have(stage, tensor).push_back({sum, false});
  }

  bool reduced_each_time(TensorId parameter) const {
    return std::any_of(plan_.store.begin(), plan_.store.end(), [&](const StoreRule& rule) {
      return rule.reduce == "each" && rule.what != "state" && matches(rule.params, model_[parameter].name);
    });
  }

  int want(int stage, Segment segment, TensorId tensor, const Layout& need) {
    for (const Available& one : have(stage, tensor))
      if (usable(stage, one, segment) && value(stage, one.value).layout == need) return one.value;
    // A batch input or constant is read from the caller's own copy, in any pieces; what stays from step to
    // step is not cut by time, each micro-batch takes its part.
    Role role = model_[tensor].role;
    if (role != Role::kValue && role != Role::kParameter) {
      Layout kept = need;
      if (role != Role::kBatchInput) kept[time()] = AxisLayout{};
      int id = load(stage, tensor, kept);
      return kept == need ? id : convert(stage, segment, id, need);
    }
    if (int source = best_source(stage, segment, tensor, need); source >= 0)
      return convert(stage, segment, source, need);
    obtain(stage, segment, tensor, need);
    return want(stage, segment, tensor, need);
  }

  int best_source(int stage, Segment segment, TensorId tensor, const Layout& need) {
    int best = -1;
    size_t least = 0;
    for (const Available& one : have(stage, tensor)) {
      if (!usable(stage, one, segment)) continue;
      size_t steps = plan_conversion(value(stage, one.value).layout, need).size();
      if (best < 0 || steps < least) {
        best = one.value;
        least = steps;
      }
    }
    return best;
  }

  int load(int stage, TensorId tensor, const Layout& layout) {
    bool lasting = model_[tensor].role != Role::kBatchInput;
    int id = add_value(stage, {.tensor = tensor, .layout = layout, .loaded = true, .lasting = lasting});
    have(stage, tensor).push_back({id, false});
    return id;
  }

  void obtain(int stage, Segment segment, TensorId tensor, const Layout& need) {
    if (model_[tensor].role == Role::kParameter) {
      load(stage, tensor, split_.stored[tensor.value]);
      return;
    }
    size_t op = producer_[tensor.value];
    Level level = split_.ops[op].level;
    if (run_again(stage, segment, tensor)) return emit(stage, segment, op);
    if (level == Level::kInside) return bring(stage, segment, tensor, need);
    bool early = level == Level::kBefore && !is_view(model_.ops[op]);
    emit(stage, early ? Segment::kPrologue : segment, op);
  }

  // From the stage that makes it, to the same coordinates of this one.
  void bring(int stage, Segment segment, TensorId tensor, const Layout& need) {
    int from = home(tensor);
    CHECK(from != stage);
    Segment after = segment_of(producer_[tensor.value]);
    int source = -1;
    if (segment == Segment::kEpilogue) {
      for (const Available& one : have(from, tensor))
        if (usable(from, one, segment) && value(from, one.value).made != Segment::kEpilogue)
          source = one.value;
      CHECK(source >= 0);
    } else {
      source = want(from, after, tensor, need);
    }
    const Value& sent = value(from, source);
    if (sent.accumulator) after = Segment::kEpilogue;
    int arrived = add_value(stage, {.tensor = tensor, .layout = sent.layout, .made = segment});
    have(stage, tensor).push_back({arrived, false});
    code_.transfers.push_back({from, stage, source, arrived, after, segment});
  }

  int convert(int stage, Segment segment, int source, const Layout& need) {
    TensorId tensor = value(stage, source).tensor;
    bool stored = value(stage, source).loaded || is_segment_only(stage, source);
    int current = source;
    for (const Conversion& step : plan_conversion(value(stage, source).layout, need)) {
      const Value& before = value(stage, current);
      bool same_storage = step.kind == InstrKind::kAllReduce || step.kind == InstrKind::kMove;
      Value next{.tensor = tensor,
                 .layout = step.result,
                 .made = segment,
                 .storage = same_storage ? before.storage : -1};
      if (step.kind == InstrKind::kAllReduce)
        std::erase_if(have(stage, tensor), [&](const Available& one) { return one.value == current; });
      int id = add_value(stage, next);
      push(stage, segment,
           {.kind = step.kind,
            .in = {current},
            .out = {id},
            .axes = step.axes,
            .dim = step.dim,
            .leaf = step.leaf});
      current = id;
    }
    have(stage, tensor).push_back({current, stored});
    return current;
  }

  bool is_segment_only(int stage, int id) {
    for (const Available& one : have(stage, value(stage, id).tensor))
      if (one.value == id) return one.segment_only;
    return false;
  }

  /// The parameter as this stage keeps it, or -1.
  int held_value(int stage, TensorId parameter) {
    for (const Available& one : have(stage, parameter))
      if (value(stage, one.value).loaded) return one.value;
    return -1;
  }

  // A tied parameter lies on several stages: its gradient travels as it was made, before any of them sums it
  // in place.
  void fetch_gradient(TensorId parameter, TensorId gradient) {
    for (int stage = 0; stage < static_cast<int>(code_.stages.size()); ++stage) {
      bool made_inside = split_.ops[producer_[gradient.value]].level == Level::kInside;
      if (held_value(stage, parameter) >= 0 && made_inside && home(gradient) != stage)
        bring(stage, Segment::kEpilogue, gradient, replicated());
    }
  }

  // A gradient that is computed after the loop may read parameters, so it is before the first of them
  // changes.
  void compute_late(TensorId parameter, TensorId gradient) {
    if (split_.ops[producer_[gradient.value]].level == Level::kInside) return;
    for (int stage = 0; stage < static_cast<int>(code_.stages.size()); ++stage)
      if (held_value(stage, parameter) >= 0)
        want(stage, Segment::kEpilogue, gradient, split_.updated[parameter.value]);
  }

  // Every stage that holds the parameter gets the whole gradient of the piece that it updates. A parameter
  // that lies whole while its states are cut is put together again from the ranks' pieces; the old one dies
  // first.
  void finish(TensorId parameter, TensorId gradient) {
    for (int stage = 0; stage < static_cast<int>(code_.stages.size()); ++stage) {
      int held = held_value(stage, parameter);
      if (held < 0) continue;
      const Layout& stored = split_.stored[parameter.value];
      const Layout& updated = split_.updated[parameter.value];
      int ready = want(stage, Segment::kEpilogue, gradient, updated);
      code_.stages[stage].gradients.push_back({ready, parameter});
      if (plan_.optimizer.name == "none") {
        code_.stages[stage].parameters.push_back(held);
        continue;
      }
      int piece = want(stage, Segment::kEpilogue, parameter, updated);
      CodeStep step{.kind = InstrKind::kOptimize, .in = {piece, ready}, .out = {piece}};
      for (int s = 0; s < optimizer_states(plan_.optimizer); ++s)
        step.in.push_back(add_value(
            stage, {.tensor = parameter, .layout = updated, .loaded = true, .lasting = true, .state = s}));
      push(stage, Segment::kEpilogue, std::move(step));
      if (stored != updated) {
        code_.stages[stage].values[held].lasting = false;
        piece = convert(stage, Segment::kEpilogue, piece, stored);
      }
      code_.stages[stage].parameters.push_back(piece);
    }
  }

  // An all-reduce changes its input in place. Where another name of that storage is read later, or where the
  // input is a view with gaps, it works on a copy.
  static void protect_in_place(const Model& model, StageCode& code) {
    for (size_t s = 0; s < kSegments; ++s) {
      for (size_t k = 0; k < code.segments[s].size(); ++k) {
        if (code.segments[s][k].kind != InstrKind::kAllReduce) continue;
        Readers readers = readers_after(code, s, k);
        int original = code.segments[s][k].in[0];
        if (!readers.others && is_dense(model[code.values[original].tensor])) continue;
        CodeStep& step = code.segments[s][k];
        int id = static_cast<int>(code.values.size());
        code.values.push_back({.tensor = code.values[original].tensor,
                               .layout = code.values[original].layout,
                               .made = static_cast<Segment>(s),
                               .storage = id});
        for (int name : readers.names) code.values[name].storage = id;
        step.in[0] = id;
        std::vector<CodeStep>& steps = code.segments[s];
        steps.insert(steps.begin() + static_cast<ptrdiff_t>(k),
                     {{.kind = InstrKind::kZeros, .out = {id}},
                      {.kind = InstrKind::kAdd, .in = {id, original}, .out = {id}}});
        k += 2;
      }
    }
  }

  struct Readers {
    std::set<int> names;  // the result of the all-reduce and views of it
    bool others = false;  // something reads the storage under another name
  };

  static Readers readers_after(const StageCode& code, size_t segment, size_t index) {
    const CodeStep& reduce = code.segments[segment][index];
    int storage = code.values[reduce.in[0]].storage;
    Readers readers{.names = {reduce.out[0]}};
    for (size_t s = segment; s < kSegments; ++s) {
      for (size_t k = s == segment ? index + 1 : 0; k < code.segments[s].size(); ++k) {
        const CodeStep& step = code.segments[s][k];
        bool derived = false;
        for (int in : step.in) {
          if (code.values[in].storage != storage) continue;
          (readers.names.contains(in) ? derived : readers.others) = true;
        }
        for (int out : step.out)
          if (derived && out >= 0 && code.values[out].storage == storage) readers.names.insert(out);
      }
    }
    return readers;
  }

  const Model& model_;
  const Plan& plan_;
  const Transformed& split_;
  const Assigned& assigned_;
  Code code_;
  std::vector<std::vector<std::vector<Available>>> have_;  // stage, tensor
  std::vector<int> producer_;
  std::vector<bool> wanted_after_;
  std::vector<bool> dropped_;  // by tensor: not kept for backward, made again there
  std::map<TensorId, TensorId> parameter_of_;
};

}  // namespace

Code write_code(const Model& model, const Plan& plan, const Transformed& transformed,
                const Assigned& assigned) {
  return CodeWriter(model, plan, transformed, assigned).write();
}

}  // namespace partita
