#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/names.h"
#include "lower/code.h"
#include "lower/protect.h"
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
    for (StageCode& stage : code_.stages) stage.time = transformed.time_axis();
    have_.resize(plan.stages.size(), std::vector<std::vector<Available>>(model.tensors.size()));
    producer_.assign(model.tensors.size(), -1);
    for (size_t i = 0; i < model.ops.size(); ++i)
      for (TensorId id : model.ops[i].outputs)
        if (id) producer_[id.value] = static_cast<int>(i);
    readers_.resize(model.tensors.size());
    for (size_t i = 0; i < model.ops.size(); ++i)
      for (TensorId id : inputs_of(model.ops[i])) readers_[id.value].push_back(i);
    find_wanted_after();
    find_dropped();
    for (auto [parameter, gradient] : model.gradients) parameter_of_[gradient] = parameter;
    loss_gradient_ = partita::loss_gradient(model);
  }

  Code write() {
    for (size_t i = 0; i < model_.ops.size(); ++i)
      for (int stage : assigned_.stages[i]) take(stage, i);
    run_pending();
    StageCode& last = code_.stages[assigned_.loss_stage];
    last.loss = want(assigned_.loss_stage, Segment::kEpilogue, model_.loss, replicated());
    for (auto [buffer, value] : model_.buffers) {
      int stage = producer_[value.value] < 0 ? 0 : home(value);
      code_.stages[stage].buffers.push_back({want(stage, Segment::kEpilogue, value, replicated()), buffer});
    }
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

  /// Inside which loop code is written, and for which piece.
  struct Place {
    int loop = -1, piece = -1;
  };

  bool cut_by_loop(const Layout& layout) const {
    return place_.loop >= 0 && layout[split_.loop_axis[place_.loop]].kind != AxisLayout::kReplicated;
  }

  int add_value(int stage, Value value) {
    std::vector<Value>& values = code_.stages[stage].values;
    if (cut_by_loop(value.layout)) {
      value.loop = place_.loop;
      value.piece = place_.piece;
    }
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
    if (v.piece >= 0 && (v.loop != place_.loop || v.piece != place_.piece)) return false;
    if (v.accumulator) return segment == Segment::kEpilogue;
    if (one.segment_only || run_again(stage, segment, v.tensor)) return v.made == segment;
    bool gone = loops() && segment == Segment::kEpilogue && !v.loaded &&
                (v.made == Segment::kForward || v.made == Segment::kBackward);
    return v.made <= segment && !gone;
  }

  /// Ops of one loop in a row, not yet written: they are written once for each piece.
  struct Pending {
    int stage = -1, loop = -1;
    Segment segment = Segment::kForward;
    std::vector<size_t> ops;
  };

  void take(int stage, size_t i) {
    int loop = split_.ops[i].loop;
    Segment segment = segment_of(i);
    bool same = loop >= 0 && pending_.loop == loop && pending_.stage == stage && pending_.segment == segment;
    if (!pending_.ops.empty() && (same ? needs_it_whole(i) : loop >= 0 || reads_pending(i))) {
      run_pending();
      same = false;
    }
    if (loop < 0) {
      emit(stage, segment, i);
      return;
    }
    if (!same) pending_ = {stage, loop, segment, {}};
    pending_.ops.push_back(i);
  }

  bool made_in(const std::vector<size_t>& ops, TensorId tensor) const {
    int producer = producer_[tensor.value];
    return producer >= 0 && std::find(ops.begin(), ops.end(), static_cast<size_t>(producer)) != ops.end();
  }

  bool reads_pending(size_t i) const {
    std::vector<TensorId> ins = inputs_of(model_.ops[i]);
    return std::any_of(ins.begin(), ins.end(), [&](TensorId id) { return made_in(pending_.ops, id); });
  }

  // An op of the loop itself that needs other pieces than its own of what the loop makes: the loop ends, and
  // another begins.
  bool needs_it_whole(size_t i) const {
    size_t axis = split_.loop_axis[pending_.loop];
    std::vector<TensorId> ins = inputs_of(model_.ops[i]);
    for (size_t k = 0; k < ins.size(); ++k) {
      if (!made_in(pending_.ops, ins[k])) continue;
      if (made_of(ins[k])[axis] != split_.ops[i].need[k][axis]) return true;
    }
    return false;
  }

  void run_pending() {
    Pending group = std::move(pending_);
    pending_ = {};
    if (group.ops.empty()) return;
    for (size_t i : group.ops) group_of_[i] = groups_.size();
    groups_.push_back(group.ops);
    run_loop(group.stage, group.segment, group.loop, group.ops);
  }

  // Writes the ops once for each piece. What others read is added up piece by piece, or joined at the end.
  void run_loop(int stage, Segment segment, int loop, const std::vector<size_t>& ops) {
    Place before = place_;
    size_t axis = split_.loop_axis[loop];
    std::map<TensorId, std::vector<int>> made;  // by piece
    std::map<TensorId, int> sums;
    for (int piece = 0; piece < plan_.loops[loop].size; ++piece) {
      place_ = {loop, piece};
      for (size_t i : ops) {
        for (int id : emit(stage, segment, i)) {
          if (id < 0 || !read_outside(segment, value(stage, id).tensor, ops)) continue;
          TensorId tensor = value(stage, id).tensor;
          if (value(stage, id).layout[axis].kind != AxisLayout::kPartial) {
            made[tensor].push_back(id);
            continue;
          }
          auto [sum, fresh] = sums.try_emplace(tensor);
          if (fresh) {
            Layout layout = value(stage, id).layout;
            layout[axis] = AxisLayout{};
            sum->second = add_value(stage, {.tensor = tensor, .layout = layout, .made = segment});
            push(stage, segment, {.kind = InstrKind::kZeros, .out = {sum->second}});
          }
          push(stage, segment, {.kind = InstrKind::kAdd, .in = {sum->second, id}, .out = {sum->second}});
        }
      }
    }
    place_ = before;
    for (size_t i : ops)
      for (TensorId tensor : model_.ops[i].outputs)
        if (tensor) end_loop(stage, segment, axis, tensor, made, sums);
  }

  void end_loop(int stage, Segment segment, size_t axis, TensorId tensor,
                const std::map<TensorId, std::vector<int>>& made, const std::map<TensorId, int>& sums) {
    std::erase_if(have(stage, tensor), [&](const Available& one) {
      return value(stage, one.value).layout[axis].kind == AxisLayout::kPartial;
    });
    int whole = -1;
    if (auto sum = sums.find(tensor); sum != sums.end()) whole = sum->second;
    if (auto pieces = made.find(tensor); pieces != made.end())
      whole = join(stage, segment, axis, pieces->second);
    if (whole < 0) return;
    have(stage, tensor).push_back({whole, false});
    settle_output(stage, segment, whole);
  }

  int join(int stage, Segment segment, size_t axis, const std::vector<int>& pieces) {
    const Value& first = value(stage, pieces[0]);
    AxisLayout cut = first.layout[axis];
    if (cut.kind == AxisLayout::kReplicated) return pieces[0];
    Value whole{.tensor = first.tensor, .layout = first.layout, .made = segment};
    whole.layout[axis] = AxisLayout{};
    int id = add_value(stage, std::move(whole));
    push(stage, segment,
         {.kind = InstrKind::kConcat, .in = pieces, .out = {id}, .dim = cut.dim, .leaf = cut.leaf});
    return id;
  }

  // Does anything read it that cannot take the pieces of this loop as they are?
  bool read_outside(Segment segment, TensorId tensor, const std::vector<size_t>& ops) const {
    if (wanted_after_[tensor.value]) return true;
    return std::any_of(readers_[tensor.value].begin(), readers_[tensor.value].end(), [&](size_t reader) {
      bool made_again = segment == Segment::kForward && model_.ops[reader].backward && dropped_[tensor.value];
      if (made_again || std::find(ops.begin(), ops.end(), reader) != ops.end()) return false;
      return split_.ops[reader].loop != split_.ops[ops[0]].loop || needs_other_pieces(tensor, reader);
    });
  }

  // In backward the same loop may read the pieces that forward left.
  bool needs_other_pieces(TensorId tensor, size_t reader) const {
    size_t axis = split_.loop_axis[split_.ops[reader].loop];
    const AxisLayout& made = made_of(tensor)[axis];
    std::vector<TensorId> ins = inputs_of(model_.ops[reader]);
    for (size_t k = 0; k < ins.size(); ++k)
      if (ins[k] == tensor && (made.kind != AxisLayout::kShard || split_.ops[reader].need[k][axis] != made))
        return true;
    return false;
  }

  std::vector<int> emit(int stage, Segment segment, size_t i) {
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
    if (plan_.optimizer.precision.loss_scale > 0 && op.outputs[0] == loss_gradient_)
      push(stage, segment, {.kind = InstrKind::kScale, .in = {outs[0]}, .out = {outs[0]}});
    // What a loop makes is settled when it is whole.
    if (split.level == Level::kInside && split.loop < 0)
      for (int out : outs)
        if (out >= 0) settle_output(stage, segment, out);
    return outs;
  }

  // A gradient stored in pieces is reduced as soon as it is made; a sum over micro-batches starts to
  // accumulate.
  void settle_output(int stage, Segment segment, int id) {
    TensorId tensor = value(stage, id).tensor;
    Layout layout = value(stage, id).layout;
    bool accumulate = loops() && layout[time()].kind == AxisLayout::kPartial && wanted_after_[tensor.value];
    auto parameter = parameter_of_.find(tensor);
    std::optional<DType> as = sum_dtype(tensor);
    if (as && (accumulate || !loops())) id = cast(stage, segment, id, *as);
    if (parameter != parameter_of_.end() && reduced_each_time(parameter->second) &&
        (accumulate || !loops())) {
      Layout cut = split_.updated[parameter->second.value];
      cut[time()] = layout[time()];
      id = want(stage, segment, tensor, cut, as);
      layout = cut;
    }
    if (!accumulate) return;
    layout[time()] = AxisLayout{};
    int sum = add_value(stage, {.tensor = tensor, .layout = layout, .accumulator = true, .as = as});
    push(stage, Segment::kPrologue, {.kind = InstrKind::kZeros, .out = {sum}});
    push(stage, segment, {.kind = InstrKind::kAdd, .in = {sum, id}, .out = {sum}});
    have(stage, tensor).push_back({sum, false});
  }

  bool reduced_each_time(TensorId parameter) const {
    return std::any_of(plan_.store.begin(), plan_.store.end(), [&](const StoreRule& rule) {
      return rule.reduce == "each" && rule.what != "state" && matches(rule.params, model_[parameter].name);
    });
  }

  // In half precision gradients are summed up in float32, or what the plan says.
  std::optional<DType> sum_dtype(TensorId tensor) const {
    if (!parameter_of_.contains(tensor)) return std::nullopt;
    DType own = model_[tensor].dtype;
    std::optional<DType> role = plan_.optimizer.precision.grad;
    bool summed = loops() || plan_.mesh_size() > 1;
    if (!role && summed && dtype_bytes(own) < dtype_bytes(DType::kFloat32)) role = DType::kFloat32;
    DType wide = widened(own, role);
    return wide == own ? std::nullopt : std::optional(wide);
  }

  int cast(int stage, Segment segment, int source, DType dtype) {
    const Value& before = value(stage, source);
    Value next{.tensor = before.tensor, .layout = before.layout, .made = segment};
    if (dtype != model_[before.tensor].dtype) next.as = dtype;
    int id = add_value(stage, next);
    push(stage, segment, {.kind = InstrKind::kCast, .in = {source}, .out = {id}});
    have(stage, next.tensor).push_back({id, false});
    return id;
  }

  int want(int stage, Segment segment, TensorId tensor, const Layout& need, std::optional<DType> as = {}) {
    for (const Available& one : have(stage, tensor)) {
      const Value& v = value(stage, one.value);
      if (usable(stage, one, segment) && v.layout == need && v.as == as) return one.value;
    }
    // A batch input or constant is read from the caller's own copy, in any pieces; what stays from step to
    // step is not cut by time, each micro-batch takes its part.
    Role role = model_[tensor].role;
    if (role != Role::kValue && role != Role::kParameter) {
      Layout kept = need;
      for (size_t axis = role == Role::kBatchInput ? time() + 1 : time(); axis < kept.size(); ++axis)
        kept[axis] = AxisLayout{};
      int id = load(stage, tensor, kept);
      return kept == need ? id : convert(stage, segment, id, need);
    }
    if (int source = best_source(stage, segment, tensor, need, as); source >= 0)
      return convert(stage, segment, source, need);
    if (as)
      if (int source = best_source(stage, segment, tensor, need, {}); source >= 0) {
        cast(stage, segment, source, *as);
        return want(stage, segment, tensor, need, as);
      }
    obtain(stage, segment, tensor, need);
    return want(stage, segment, tensor, need, as);
  }

  int best_source(int stage, Segment segment, TensorId tensor, const Layout& need, std::optional<DType> as) {
    int best = -1;
    size_t least = 0;
    for (const Available& one : have(stage, tensor)) {
      if (!usable(stage, one, segment) || value(stage, one.value).as != as) continue;
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
    if (run_again(stage, segment, tensor)) return make_again(stage, segment, tensor, need);
    if (level == Level::kInside) return bring(stage, segment, tensor, need);
    bool early = level == Level::kBefore && !is_view(model_.ops[op]);
    emit(stage, early ? Segment::kPrologue : segment, op);
  }

  // Inside its own loop a piece is made again where a piece is needed; else all of the loop runs again.
  void make_again(int stage, Segment segment, TensorId tensor, const Layout& need) {
    size_t op = producer_[tensor.value];
    int loop = split_.ops[op].loop;
    if (loop < 0 ||
        (loop == place_.loop && made_of(tensor)[split_.loop_axis[loop]] == need[split_.loop_axis[loop]])) {
      emit(stage, segment, op);
      return;
    }
    std::vector<size_t> ops;
    for (size_t i : groups_[group_of_.at(op)])
      if (i <= op) ops.push_back(i);
    Place before = place_;
    place_ = {};
    run_loop(stage, segment, loop, ops);
    place_ = before;
  }

  const Layout& made_of(TensorId tensor) const {
    const Op& producer = model_.ops[producer_[tensor.value]];
    size_t o = std::find(producer.outputs.begin(), producer.outputs.end(), tensor) - producer.outputs.begin();
    return split_.ops[producer_[tensor.value]].made[o];
  }

  // From the stage that makes it, to the same coordinates of this one.
  void bring(int stage, Segment segment, TensorId tensor, const Layout& need) {
    int from = home(tensor);
    CHECK(from != stage);
    Segment after = segment_of(producer_[tensor.value]);
    int source = -1;
    if (segment == Segment::kEpilogue) {
      for (const Available& one : have(from, tensor))
        if (usable(from, one, segment) && value(from, one.value).made != Segment::kEpilogue &&
            value(from, one.value).as == sum_dtype(tensor))
          source = one.value;
      CHECK(source >= 0);
    } else {
      // Pieces of a loop are cut out where the loop runs.
      Layout whole = need;
      std::fill(whole.begin() + static_cast<ptrdiff_t>(time()) + 1, whole.end(), AxisLayout{});
      Place before = place_;
      place_ = {};
      source = want(from, after, tensor, whole);
      place_ = before;
    }
    const Value& sent = value(from, source);
    if (sent.accumulator) after = Segment::kEpilogue;
    int arrived = add_value(stage, {.tensor = tensor, .layout = sent.layout, .made = segment, .as = sent.as});
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
                 .storage = same_storage ? before.storage : -1,
                 .as = before.as};
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

  // Every stage that holds the parameter gets the whole gradient of the piece that it updates.
  void complete(TensorId parameter, TensorId gradient) {
    for (int stage = 0; stage < static_cast<int>(code_.stages.size()); ++stage) {
      if (held_value(stage, parameter) < 0) continue;
      int ready =
          want(stage, Segment::kEpilogue, gradient, split_.updated[parameter.value], sum_dtype(gradient));
      code_.stages[stage].gradients.push_back({ready, parameter});
    }
  }

  // The sum of the squares of all gradients, on every rank. A part that several ranks hold counts once, and a
  // tied parameter on the first stage that has it.
  void add_norm() {
    std::set<TensorId> counted;
    for (int stage = 0; stage < static_cast<int>(code_.stages.size()); ++stage) {
      int sum = add_value(stage, {.layout = replicated(), .made = Segment::kEpilogue});
      push(stage, Segment::kEpilogue, {.kind = InstrKind::kZeros, .out = {sum}});
      for (auto [ready, parameter] : code_.stages[stage].gradients) {
        if (!counted.insert(parameter).second) continue;
        CodeStep step{.kind = InstrKind::kSquares, .in = {sum, ready}, .out = {sum}};
        for (size_t axis = 0; axis < time(); ++axis)
          if (value(stage, ready).layout[axis].kind == AxisLayout::kReplicated)
            step.axes.push_back(static_cast<int>(axis));
        push(stage, Segment::kEpilogue, std::move(step));
      }
      if (plan_.ranks() > 1)
        push(stage, Segment::kEpilogue,
             {.kind = InstrKind::kAllReduce, .in = {sum}, .out = {sum}, .everyone = true});
      norms_.push_back(sum);
      clip(stage, sum);
    }
  }

  // One gradient may belong to several parameters.
  void clip(int stage, int norm) {
    std::map<int, int> clipped;
    for (auto& [ready, parameter] : code_.stages[stage].gradients) {
      auto [known, fresh] = clipped.try_emplace(ready);
      if (fresh) {
        Value next = value(stage, ready);
        next.made = Segment::kEpilogue;
        next.accumulator = false;
        known->second = add_value(stage, next);
        push(stage, Segment::kEpilogue,
             {.kind = InstrKind::kClip, .in = {ready, norm}, .out = {known->second}});
      }
      ready = known->second;
    }
  }

  // A parameter that lies whole while its states are cut is put together again from the ranks' pieces; the
  // old one dies first.
  void finish(TensorId parameter) {
    for (int stage = 0; stage < static_cast<int>(code_.stages.size()); ++stage) {
      int held = held_value(stage, parameter);
      if (held < 0) continue;
      const Layout& stored = split_.stored[parameter.value];
      const Layout& updated = split_.updated[parameter.value];
      if (plan_.optimizer.name == "none") {
        code_.stages[stage].parameters.push_back(held);
        continue;
      }
      int piece = want(stage, Segment::kEpilogue, parameter, updated);
      push(stage, Segment::kEpilogue, update(stage, parameter, piece));
      if (stored != updated) {
        code_.stages[stage].values[held].lasting = false;
        piece = convert(stage, Segment::kEpilogue, piece, stored);
      }
      code_.stages[stage].parameters.push_back(piece);
    }
  }

  CodeStep update(int stage, TensorId parameter, int piece) {
    DType own = model_[parameter].dtype, dtype = updated_dtype(plan_.optimizer, own);
    int ready = -1;
    for (auto [value, its_parameter] : code_.stages[stage].gradients)
      if (its_parameter == parameter) ready = value;
    if (value(stage, ready).as.value_or(own) != dtype) ready = cast(stage, Segment::kEpilogue, ready, dtype);
    CodeStep step{.kind = InstrKind::kOptimize, .in = {piece, ready}, .out = {piece}};
    int states = optimizer_states(plan_.optimizer) + (has_master(plan_.optimizer, own) ? 1 : 0);
    for (int s = 0; s < states; ++s) {
      Value state{.tensor = parameter,
                  .layout = split_.updated[parameter.value],
                  .loaded = true,
                  .lasting = true,
                  .state = s};
      if (dtype != own) state.as = dtype;
      step.in.push_back(add_value(stage, std::move(state)));
    }
    if (plan_.optimizer.needs_norm()) step.in.push_back(norms_[stage]);
    return step;
  }

  const Model& model_;
  const Plan& plan_;
  const Transformed& split_;
  const Assigned& assigned_;
  Code code_;
  std::vector<std::vector<std::vector<Available>>> have_;  // stage, tensor
  std::vector<int> producer_;
  std::vector<std::vector<size_t>> readers_;  // by tensor: ops
  Pending pending_;
  Place place_;
  std::vector<std::vector<size_t>> groups_;  // ops that ran in one loop
  std::map<size_t, size_t> group_of_;        // by op
  std::vector<bool> wanted_after_;
  std::vector<bool> dropped_;  // by tensor: not kept for backward, made again there
  std::map<TensorId, TensorId> parameter_of_;
  TensorId loss_gradient_;
  std::vector<int> norms_;  // by stage
};

}  // namespace

Code write_code(const Model& model, const Plan& plan, const Transformed& transformed,
                const Assigned& assigned) {
  return CodeWriter(model, plan, transformed, assigned).write();
}

}  // namespace partita
