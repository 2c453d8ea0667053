// Ops are written in the order of the model, and each asks here for what it reads. What is asked for may have
// to be made first, by ops that ask in turn: so want and write_op (write_ops.h) call each other. A plan that
// knew all readers beforehand could share conversions between them; here the first reader decides where one
// stands.
#include "lower/supply.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "layout/same_piece.h"
#include "lower/convert_layout.h"
#include "lower/sources.h"
#include "lower/write_ops.h"
#include "model/row.h"

namespace partita::lower {
namespace {

bool from_caller(const Model& model, TensorId tensor) {
  return model[tensor].role != Role::kValue && model[tensor].role != Role::kParameter;
}

// A batch input or constant is read from the caller's own copy, in any shards; what stays from step to step
// is not cut by time, each micro-batch takes its part.
int want_loaded(Draft& draft, const Place& place, TensorId tensor, const Layout& need) {
  size_t time = draft.facts.time();
  Layout kept = need;
  bool input = draft.facts.model[tensor].role == Role::kBatchInput;
  for (size_t axis = input ? time + 1 : time; axis < kept.size(); ++axis) kept[axis] = AxisLayout{};
  // Nothing at rest lies as partials.
  for (AxisLayout& axis : kept)
    if (axis.kind == AxisLayout::kPartial) axis = AxisLayout{};
  bool by_stream = draft.facts.sites.streams > 1 && kept[time].kind == AxisLayout::kShard;
  int id = load_value(draft, place, tensor, kept, by_stream ? place.segment.stream : -1);
  return kept == need ? id : convert_layout(draft, place, id, need);
}

/// Is it the same whoever makes it, a tensor of ones?
bool made_from_nothing(const Facts& facts, TensorId tensor) {
  int producer = facts.producer[tensor.value];
  return producer >= 0 && inputs_of(facts.model.ops[producer]).empty() &&
         facts.split.ops[producer].level == Level::kBefore;
}

int want_converted(Draft& draft, const Place& place, int source, const Layout& need) {
  TensorId tensor = draft.value(place, source).tensor;
  if (made_from_nothing(draft.facts, tensor) && takes_others(draft.value(place, source), need))
    source = make_alone(draft, place, tensor, need);
  return draft.value(place, source).layout == need ? source : convert_layout(draft, place, source, need);
}

// A gradient that another one is computed from after the loop was summed in a wider dtype: it is rounded to
// the model's once it is complete.
int want_rounded(Draft& draft, const Place& place, TensorId tensor, const Layout& need) {
  std::optional<DType> wide = draft.facts.sum_dtype(tensor);
  bool partial = std::any_of(need.begin(), need.end(),
                             [](const AxisLayout& axis) { return axis.kind == AxisLayout::kPartial; });
  if (!wide || partial || nearest_source(draft, place, tensor, need, wide) < 0) return -1;
  int sum = want(draft, place, tensor, need, wide);
  return cast_value(draft, place, sum, draft.facts.model[tensor].dtype);
}

// Inside its own loop a piece is made again where a piece is needed; else all of the loop runs again.
void make_again(Draft& draft, const Place& place, TensorId tensor, const Layout& need) {
  const Facts& facts = draft.facts;
  size_t op = facts.producer[tensor.value];
  int loop = facts.split.ops[op].loop;
  bool same =
      loop == place.loop && loop >= 0 && same_piece(facts.made_of(tensor), need, facts.split.loop_axis[loop]);
  if (loop < 0 || same) {
    write_op(draft, place, op);
    return;
  }
  const Job* job = draft.jobs.loop_with(op, place.segment.stream);
  if (!job) return write_loop(draft, place.outside(), loop, {op});  // a view of a weight
  std::vector<size_t> ops;
  for (size_t i : job->ops)
    if (i <= op) ops.push_back(i);
  write_loop(draft, place.outside(), loop, ops);
}

// A view of a weight is cut for the ops that read it; one that ranks split in another way needs it whole.
void make_where_asked(Draft& draft, const Place& place, TensorId tensor, const Layout& need) {
  const Facts& facts = draft.facts;
  size_t op = facts.producer[tensor.value];
  int loop = facts.split.ops[op].loop;
  if (loop >= 0 && !same_piece(facts.made_of(tensor), need, facts.split.loop_axis[loop]))
    return write_loop(draft, place.outside(), loop, {op});
  bool early = facts.split.ops[op].level == Level::kBefore && !is_view(facts.model.ops[op]);
  write_op(draft, early ? place.in(kPrologue) : place, op);
}

void obtain(Draft& draft, const Place& place, TensorId tensor, const Layout& need) {
  const Facts& facts = draft.facts;
  if (facts.model[tensor].role == Role::kParameter) {
    load_value(draft, place, tensor, facts.split.stored[tensor.value]);
    return;
  }
  if (facts.recomputed_in(place.site, place.segment, tensor)) return make_again(draft, place, tensor, need);
  bool inside = facts.split.ops[facts.producer[tensor.value]].level == Level::kInside;
  if (!inside) return make_where_asked(draft, place, tensor, need);
  if (place.segment == kEpilogue && facts.sites.streams > 1) return merge_streams(draft, place, tensor);
  bring(draft, place, tensor, need);
}

[[noreturn]] void not_here(const Draft& draft, const Place& place, TensorId tensor, const Layout& need) {
  std::vector<std::string> there;
  for (const Available& one : draft.have(place.site, tensor))
    if (usable(draft, place, one)) there.push_back(to_text(draft.value(place, one.value).layout));
  bug(__FILE__, __LINE__,
      fmt::format("{} as {} is there when {} of stage {} reads it; there is {}",
                  draft.facts.model[tensor].name, to_text(need),
                  place.segment.backward() ? "backward" : "forward", place.segment.stage,
                  there.empty() ? "nothing" : fmt::format("{}", fmt::join(there, ", "))));
}

}  // namespace

int want(Draft& draft, const Place& place, TensorId tensor, const Layout& need, std::optional<DType> as) {
  for (const Available& one : draft.have(place.site, tensor)) {
    const Value& v = draft.value(place, one.value);
    if (usable(draft, place, one) && v.layout == need && v.as == as) return one.value;
  }
  if (from_caller(draft.facts.model, tensor)) return want_loaded(draft, place, tensor, need);
  if (int source = nearest_source(draft, place, tensor, need, as); source >= 0)
    return want_converted(draft, place, source, need);
  if (as)
    if (int source = nearest_source(draft, place, tensor, need, {}); source >= 0) {
      cast_value(draft, place, source, *as);
      return want(draft, place, tensor, need, as);
    }
  if (!as)
    if (int sum = want_rounded(draft, place, tensor, need); sum >= 0) return sum;
  obtain(draft, place, tensor, need);
  return want(draft, place, tensor, need, as);
}

void bring(Draft& draft, const Place& place, TensorId tensor, const Layout& need) {
  const Facts& facts = draft.facts;
  int from = facts.home(tensor, place.segment.stream);
  if (from == place.site || from == Sites::kAll) not_here(draft, place, tensor, need);
  Segment after =
      facts.segment_of(facts.producer[tensor.value], facts.home_stage(tensor), place.segment.stream);
  int source = -1;
  if (place.segment == kEpilogue) {
    source = before_epilogue(draft, from, tensor);
  } else {
    // To the same coordinates of this site. Pieces of a loop are cut out where the loop runs.
    Layout whole = need;
    if (facts.plan.has_across()) whole[0] = AxisLayout{};
    std::fill(whole.begin() + static_cast<ptrdiff_t>(facts.time()) + 1, whole.end(), AxisLayout{});
    after = leaves_after(draft, {from, place.segment}, after, tensor);
    source = want(draft, {from, after}, tensor, whole);
  }
  const Value& sent = draft.value(from, source);
  if (sent.accumulator) after = kEpilogue;
  int arrived =
      draft.add(place, {.tensor = tensor, .layout = sent.layout, .made = place.segment, .as = sent.as});
  draft.offer(place.site, arrived);
  draft.code.transfers.push_back({from, place.site, source, arrived, after, place.segment});
}

}  // namespace partita::lower
