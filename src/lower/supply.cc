#include <algorithm>

#include "base/error.h"
#include "lower/code_writer.h"
#include "lower/convert.h"
#include "model/row.h"
#include "program/words.h"

namespace partita::lower {

bool CodeWriter::usable(int site, const Available& one, Segment segment) const {
  const Value& v = value(site, one.value);
  if (v.piece >= 0 && (v.loop != place_.loop || v.piece != place_.piece)) return false;
  if (v.stream >= 0 && v.stream != segment.stream) return false;
  // Of several streams each sums up its own micro-batches.
  if (v.accumulator) return segment == kEpilogue && sites_.streams == 1;
  if (one.segment_only) return v.made == segment;
  if (run_again(site, segment, v.tensor))
    return v.made.backward() && v.made.stage == segment.stage && precedes(v.made, segment);
  bool gone = loops() && segment == kEpilogue && !v.loaded && v.made.in_loop();
  return precedes(v.made, segment) && !gone;
}

int CodeWriter::cast(int site, Segment segment, int source, DType dtype) {
  const Value& before = value(site, source);
  Value next{.tensor = before.tensor, .layout = before.layout, .made = segment};
  if (dtype != model_[before.tensor].dtype) next.as = dtype;
  int id = add_value(site, next);
  push(site, segment, {.kind = InstrKind::kCast, .in = {source}, .out = {id}});
  have(site, next.tensor).push_back({id, false});
  return id;
}

int CodeWriter::want(int site, Segment segment, TensorId tensor, const Layout& need,
                     std::optional<DType> as) {
  for (const Available& one : have(site, tensor)) {
    const Value& v = value(site, one.value);
    if (usable(site, one, segment) && v.layout == need && v.as == as) return one.value;
  }
  // A batch input or constant is read from the caller's own copy, in any pieces; what stays from step to
  // step is not cut by time, each micro-batch takes its part.
  Role role = model_[tensor].role;
  if (role != Role::kValue && role != Role::kParameter) {
    Layout kept = need;
    for (size_t axis = role == Role::kBatchInput ? time() + 1 : time(); axis < kept.size(); ++axis)
      kept[axis] = AxisLayout{};
    // Nothing at rest lies as addends.
    for (AxisLayout& axis : kept)
      if (axis.kind == AxisLayout::kPartial) axis = AxisLayout{};
    bool by_stream = sites_.streams > 1 && kept[time()].kind == AxisLayout::kShard;
    int id = load(site, tensor, kept, by_stream ? segment.stream : -1);
    return kept == need ? id : convert(site, segment, id, need);
  }
  if (int source = best_source(site, segment, tensor, need, as); source >= 0) {
    if (made_from_nothing(tensor) && meets_others(site, source, need))
      source = make_alone(site, tensor, need);
    return value(site, source).layout == need ? source : convert(site, segment, source, need);
  }
  if (as)
    if (int source = best_source(site, segment, tensor, need, {}); source >= 0) {
      cast(site, segment, source, *as);
      return want(site, segment, tensor, need, as);
    }
  if (int sum = want_rounded(site, segment, tensor, need, as); sum >= 0) return sum;
  obtain(site, segment, tensor, need);
  return want(site, segment, tensor, need, as);
}

// A gradient that another one is computed from after the loop was summed in a wider dtype: it is rounded to
// the model's once it is complete.
int CodeWriter::want_rounded(int site, Segment segment, TensorId tensor, const Layout& need,
                             std::optional<DType> as) {
  std::optional<DType> wide = sum_dtype(tensor);
  bool partial = std::any_of(need.begin(), need.end(),
                             [](const AxisLayout& axis) { return axis.kind == AxisLayout::kPartial; });
  if (as || !wide || partial || best_source(site, segment, tensor, need, wide) < 0) return -1;
  return cast(site, segment, want(site, segment, tensor, need, wide), model_[tensor].dtype);
}

// Pieces in time cannot be gathered: the others are not there yet, or not any more.
bool CodeWriter::reachable(const Layout& from, const Layout& to) const {
  for (size_t axis = time(); axis < from.size(); ++axis)
    if (from[axis].kind == AxisLayout::kShard && !same_piece(from, to, axis)) return false;
  return true;
}

int CodeWriter::best_source(int site, Segment segment, TensorId tensor, const Layout& need,
                            std::optional<DType> as) {
  int best = -1;
  std::pair<int64_t, size_t> least;
  for (const Available& one : have(site, tensor)) {
    if (!usable(site, one, segment) || value(site, one.value).as != as) continue;
    if (!reachable(value(site, one.value).layout, need)) continue;
    std::vector<Conversion> steps = plan_conversion(value(site, one.value).layout, need);
    int64_t meetings = std::count_if(steps.begin(), steps.end(),
                                     [](const Conversion& step) { return row_of(step.kind).collective; });
    if (std::pair cost(meetings, steps.size()); best < 0 || cost < least) {
      best = one.value;
      least = cost;
    }
  }
  return best;
}

bool CodeWriter::made_from_nothing(TensorId tensor) const {
  int producer = producer_[tensor.value];
  return producer >= 0 && inputs_of(model_.ops[producer]).empty() &&
         split_.ops[producer].level == Level::kBefore;
}

bool CodeWriter::meets_others(int site, int source, const Layout& need) const {
  std::vector<Conversion> steps = plan_conversion(value(site, source).layout, need);
  return std::any_of(steps.begin(), steps.end(),
                     [](const Conversion& step) { return row_of(step.kind).collective; });
}

// A tensor of ones that another op wants in other shards is made once more: nobody has to send it. Before the
// loop there are no micro-batches, so it is whole along time.
int CodeWriter::make_alone(int site, TensorId tensor, const Layout& need) {
  Layout layout = need;
  std::fill(layout.begin() + static_cast<ptrdiff_t>(time()), layout.end(), AxisLayout{});
  for (AxisLayout& axis : layout)
    if (axis.kind == AxisLayout::kPartial) axis = AxisLayout{};
  int id = add_value(site, {.tensor = tensor, .layout = layout, .made = kPrologue});
  push(site, kPrologue, {.op = OpId{producer_[tensor.value]}, .out = {id}});
  have(site, tensor).push_back({id, false});
  return id;
}

int CodeWriter::load(int site, TensorId tensor, const Layout& layout, int stream) {
  bool lasting = model_[tensor].role != Role::kBatchInput;
  int id = add_value(
      site, {.tensor = tensor, .layout = layout, .loaded = true, .lasting = lasting, .stream = stream});
  have(site, tensor).push_back({id, false});
  return id;
}

void CodeWriter::obtain(int site, Segment segment, TensorId tensor, const Layout& need) {
  if (model_[tensor].role == Role::kParameter) {
    load(site, tensor, split_.stored[tensor.value], -1);
    return;
  }
  size_t op = producer_[tensor.value];
  Level level = split_.ops[op].level;
  if (run_again(site, segment, tensor)) return make_again(site, segment, tensor, need);
  if (level == Level::kInside && segment == kEpilogue && sites_.streams > 1) return merge(site, tensor);
  if (level == Level::kInside) return bring(site, segment, tensor, need);
  // A view of a weight is cut for the ops that read it; one that ranks split in another way needs it whole.
  int loop = split_.ops[op].loop;
  if (loop >= 0 && !same_piece(made_of(tensor), need, split_.loop_axis[loop]))
    return run_apart(site, segment, loop, {op});
  bool early = level == Level::kBefore && !is_view(model_.ops[op]);
  emit(site, early ? kPrologue : segment, op);
}

// Inside its own loop a piece is made again where a piece is needed; else all of the loop runs again.
void CodeWriter::make_again(int site, Segment segment, TensorId tensor, const Layout& need) {
  size_t op = producer_[tensor.value];
  int loop = split_.ops[op].loop;
  if (loop < 0 || (loop == place_.loop && same_piece(made_of(tensor), need, split_.loop_axis[loop]))) {
    emit(site, segment, op);
    return;
  }
  auto group = group_of_.find(op);
  if (group == group_of_.end()) return run_apart(site, segment, loop, {op});  // a view of a weight
  std::vector<size_t> ops;
  for (size_t i : groups_[group->second])
    if (i <= op) ops.push_back(i);
  run_apart(site, segment, loop, ops);
}

// All pieces of a loop at a place inside of another, or of itself.
void CodeWriter::run_apart(int site, Segment segment, int loop, const std::vector<size_t>& ops) {
  Place before = place_;
  place_ = {};
  run_loop(site, segment, loop, ops);
  place_ = before;
}

// A value is there where it was made, but for sums that a later stage of the same devices completed in place.
Segment CodeWriter::first_segment(int site, Segment made, Segment reader, TensorId tensor) {
  const std::vector<Available>& all = have(site, tensor);
  auto there = [&](Segment segment) {
    return std::any_of(all.begin(), all.end(),
                       [&](const Available& one) { return usable(site, one, segment); });
  };
  if (all.empty() || there(made)) return made;
  std::optional<Segment> first;
  for (const Available& one : all) {
    Segment since = value(site, one.value).made;
    if (usable(site, one, reader) && since.in_loop() && (!first || since < *first)) first = since;
  }
  return first.value_or(made);
}

// What travels to the epilogue leaves before it begins: also what the epilogue then sums in place.
int CodeWriter::before_epilogue(int site, TensorId tensor) {
  std::vector<Available> all = have(site, tensor);
  for (int id : summed_last_[site])
    if (value(site, id).tensor == tensor) all.push_back({id, false});
  int source = -1;
  for (const Available& one : all)
    if (usable(site, one, kEpilogue) && value(site, one.value).made != kEpilogue &&
        value(site, one.value).as == sum_dtype(tensor))
      source = one.value;
  CHECK(source >= 0);
  return source;
}

// From the site that makes it, to the same coordinates of this one.
// Pieces of a loop are cut out where the loop runs.
void CodeWriter::bring(int site, Segment segment, TensorId tensor, const Layout& need) {
  int from = home(tensor, segment.stream);
  if (from == site || from == Sites::kAll) {
    std::vector<std::string> there;
    for (const Available& one : have(site, tensor))
      if (usable(site, one, segment)) there.push_back(to_text(value(site, one.value).layout));
    bug(__FILE__, __LINE__,
        fmt::format("{} as {} is there when {} of stage {} reads it; there is {}", model_[tensor].name,
                    to_text(need), segment.backward() ? "backward" : "forward", segment.stage,
                    there.empty() ? "nothing" : fmt::format("{}", fmt::join(there, ", "))));
  }
  Segment after = segment_of(producer_[tensor.value], home_stage(tensor), segment.stream);
  int source = -1;
  if (segment == kEpilogue) {
    source = before_epilogue(from, tensor);
  } else {
    // Pieces of a loop are cut out where the loop runs.
    Layout whole = need;
    if (plan_.has_across()) whole[0] = AxisLayout{};
    std::fill(whole.begin() + static_cast<ptrdiff_t>(time()) + 1, whole.end(), AxisLayout{});
    Place before = place_;
    place_ = {};
    after = first_segment(from, after, segment, tensor);
    source = want(from, after, tensor, whole);
    place_ = before;
  }
  const Value& sent = value(from, source);
  if (sent.accumulator) after = kEpilogue;
  int arrived = add_value(site, {.tensor = tensor, .layout = sent.layout, .made = segment, .as = sent.as});
  have(site, tensor).push_back({arrived, false});
  code_.transfers.push_back({from, site, source, arrived, after, segment});
}

// Every stream has summed up the micro-batches that went its way: the sums travel before the epilogue, and
// are added there.
void CodeWriter::merge(int site, TensorId tensor) {
  int sum = -1;
  for (int from = 0; from < sites_.count(); ++from) {
    std::vector<int> parts;
    for (const Available& one : have(from, tensor))
      if (value(from, one.value).accumulator) parts.push_back(one.value);
    for (int part : parts) {
      Value next = value(from, part);
      next.accumulator = false;
      next.made = kEpilogue;
      if (from != site) {
        next.storage = -1;
        int arrived = add_value(site, next);
        code_.transfers.push_back({from, site, part, arrived, kEpilogue, kEpilogue});
        part = arrived;
      }
      if (sum >= 0) {
        Value total = value(site, sum);
        total.accumulator = false;
        total.made = kEpilogue;
        int id = add_value(site, total);
        push(site, kEpilogue, {.kind = InstrKind::kAdd, .in = {sum, part}, .out = {id}});
        part = id;
      }
      sum = part;
    }
  }
  CHECK(sum >= 0);
  have(site, tensor).push_back({sum, false});
}

int CodeWriter::convert(int site, Segment segment, int source, const Layout& need) {
  TensorId tensor = value(site, source).tensor;
  bool stored = value(site, source).loaded || is_segment_only(site, source);
  int current = source;
  std::vector<Conversion> steps = plan_conversion(value(site, source).layout, need);
  // Weight gradients wait for nobody: a sum that others read too is completed in place where it was made.
  Segment made = value(site, source).made;
  bool sums = std::any_of(steps.begin(), steps.end(),
                          [](const Conversion& step) { return step.kind == InstrKind::kAllReduce; });
  if (segment.kind == Segment::kWeight && made.kind == Segment::kBackward && sums) segment = made;
  for (const Conversion& step : steps) {
    const Value& before = value(site, current);
    bool same_storage = step.kind == InstrKind::kAllReduce || step.kind == InstrKind::kMove;
    Value next{.tensor = tensor,
               .layout = step.result,
               .made = segment,
               .storage = same_storage ? before.storage : -1,
               .as = before.as};
    if (step.kind == InstrKind::kAllReduce)
      std::erase_if(have(site, tensor), [&](const Available& one) { return one.value == current; });
    if (step.kind == InstrKind::kAllReduce && segment == kEpilogue) summed_last_[site].push_back(current);
    int id = add_value(site, next);
    push(site, segment,
         {.kind = step.kind,
          .in = {current},
          .out = {id},
          .axes = step.axes,
          .dim = step.dim,
          .leaf = step.leaf});
    current = id;
    // What was summed in place is gone, so the sum is there for others too.
    if (step.kind == InstrKind::kAllReduce && &step != &steps.back())
      have(site, tensor).push_back({current, stored});
  }
  have(site, tensor).push_back({current, stored});
  return current;
}

bool CodeWriter::is_segment_only(int site, int id) {
  for (const Available& one : have(site, value(site, id).tensor))
    if (one.value == id) return one.segment_only;
  return false;
}

}  // namespace partita::lower
