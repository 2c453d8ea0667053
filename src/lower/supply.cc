#include <algorithm>

#include "base/error.h"
#include "lower/code_writer.h"
#include "lower/reshard.h"
#include "model/row.h"

namespace partita {

bool CodeWriter::usable(int stage, const Available& one, Segment segment) const {
  const Value& v = value(stage, one.value);
  if (v.piece >= 0 && (v.loop != place_.loop || v.piece != place_.piece)) return false;
  if (v.accumulator) return segment == Segment::kEpilogue;
  if (one.segment_only || run_again(stage, segment, v.tensor)) return v.made == segment;
  bool gone = loops() && segment == Segment::kEpilogue && !v.loaded &&
              (v.made == Segment::kForward || v.made == Segment::kBackward);
  return v.made <= segment && !gone;
}

int CodeWriter::cast(int stage, Segment segment, int source, DType dtype) {
  const Value& before = value(stage, source);
  Value next{.tensor = before.tensor, .layout = before.layout, .made = segment};
  if (dtype != model_[before.tensor].dtype) next.as = dtype;
  int id = add_value(stage, next);
  push(stage, segment, {.kind = InstrKind::kCast, .in = {source}, .out = {id}});
  have(stage, next.tensor).push_back({id, false});
  return id;
}

// A batch input or constant is read from the caller's own copy, in any pieces; what stays from step to
// step is not cut by time, each micro-batch takes its part.
int CodeWriter::want(int stage, Segment segment, TensorId tensor, const Layout& need,
                     std::optional<DType> as) {
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

int CodeWriter::best_source(int stage, Segment segment, TensorId tensor, const Layout& need,
                            std::optional<DType> as) {
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

int CodeWriter::load(int stage, TensorId tensor, const Layout& layout) {
  bool lasting = model_[tensor].role != Role::kBatchInput;
  int id = add_value(stage, {.tensor = tensor, .layout = layout, .loaded = true, .lasting = lasting});
  have(stage, tensor).push_back({id, false});
  return id;
}

void CodeWriter::obtain(int stage, Segment segment, TensorId tensor, const Layout& need) {
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
void CodeWriter::make_again(int stage, Segment segment, TensorId tensor, const Layout& need) {
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

// From the stage that makes it, to the same coordinates of this one.
// Pieces of a loop are cut out where the loop runs.
void CodeWriter::bring(int stage, Segment segment, TensorId tensor, const Layout& need) {
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

int CodeWriter::convert(int stage, Segment segment, int source, const Layout& need) {
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

bool CodeWriter::is_segment_only(int stage, int id) {
  for (const Available& one : have(stage, value(stage, id).tensor))
    if (one.value == id) return one.segment_only;
  return false;
}

}  // namespace partita
