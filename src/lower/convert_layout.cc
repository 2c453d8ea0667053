// The one place where a value of some layout becomes one of another. Which steps that takes is asked of
// plan_conversion (convert.h); here they become code, and what is there to be read follows them.
#include "lower/convert_layout.h"

#include <algorithm>

#include "base/error.h"
#include "lower/convert.h"

namespace partita::lower {
namespace {

bool is_segment_only(const Draft& draft, int site, int id) {
  for (const Available& one : draft.have(site, draft.value(site, id).tensor))
    if (one.value == id) return one.segment_only;
  return false;
}

bool sums_in_place(const Conversion& step) { return step.kind == InstrKind::kAllReduce; }

int write_step(Draft& draft, const Place& place, int source, const Conversion& step) {
  const Value& before = draft.value(place, source);
  bool same_storage = sums_in_place(step) || step.kind == InstrKind::kMove;
  Value next{.tensor = before.tensor,
             .layout = step.result,
             .made = place.segment,
             .storage = same_storage ? before.storage : -1,
             .as = before.as};
  int id = draft.add(place, std::move(next));
  draft.push(place, {.kind = step.kind,
                     .in = {source},
                     .out = {id},
                     .axes = step.axes,
                     .dim = step.dim,
                     .leaf = step.leaf});
  return id;
}

int add_up(Draft& draft, const Place& place, int sum, int part) {
  Value total = draft.value(place, sum);
  total.accumulator = false;
  total.made = kEpilogue;
  int id = draft.add(place, std::move(total));
  draft.push(place.in(kEpilogue), {.kind = InstrKind::kAdd, .in = {sum, part}, .out = {id}});
  return id;
}

}  // namespace

int convert_layout(Draft& draft, const Place& where, int source, const Layout& need) {
  int site = where.site;
  TensorId tensor = draft.value(site, source).tensor;
  Segment made = draft.value(site, source).made;
  bool stored = draft.value(site, source).loaded || is_segment_only(draft, site, source);
  std::vector<Conversion> steps = plan_conversion(draft.value(site, source).layout, need);
  // Weight gradients wait for nobody: a sum that others read too is completed in place where it was made.
  bool late = where.segment.kind == Segment::kWeight && made.kind == Segment::kBackward;
  Place place = late && std::any_of(steps.begin(), steps.end(), sums_in_place) ? where.in(made) : where;
  int current = source;
  for (const Conversion& step : steps) {
    if (sums_in_place(step)) {
      draft.withdraw(site, tensor, [&](int id) { return id == current; });
      if (place.segment == kEpilogue) draft.summed_last[site].push_back(current);
    }
    current = write_step(draft, place, current, step);
    // What was summed in place is gone, so the sum is there for others too.
    if (sums_in_place(step) && &step != &steps.back()) draft.offer(site, current, stored);
  }
  draft.offer(site, current, stored);
  return current;
}

int cast_value(Draft& draft, const Place& place, int source, DType dtype) {
  const Value& before = draft.value(place, source);
  Value next{.tensor = before.tensor, .layout = before.layout, .made = place.segment};
  if (dtype != draft.facts.model[before.tensor].dtype) next.as = dtype;
  int id = draft.add(place, std::move(next));
  draft.push(place, {.kind = InstrKind::kCast, .in = {source}, .out = {id}});
  draft.offer(place.site, id);
  return id;
}

int load_value(Draft& draft, const Place& place, TensorId tensor, const Layout& layout, int stream) {
  bool lasting = draft.facts.model[tensor].role != Role::kBatchInput;
  int id = draft.add(
      place, {.tensor = tensor, .layout = layout, .loaded = true, .lasting = lasting, .stream = stream});
  draft.offer(place.site, id);
  return id;
}

// Before the loop there are no micro-batches, so it is whole along time.
int make_alone(Draft& draft, const Place& place, TensorId tensor, const Layout& need) {
  Layout layout = need;
  std::fill(layout.begin() + static_cast<ptrdiff_t>(draft.facts.time()), layout.end(), AxisLayout{});
  for (AxisLayout& axis : layout)
    if (axis.kind == AxisLayout::kPartial) axis = AxisLayout{};
  int id = draft.add(place, {.tensor = tensor, .layout = layout, .made = kPrologue});
  draft.push(place.in(kPrologue), {.op = OpId{draft.facts.producer[tensor.value]}, .out = {id}});
  draft.offer(place.site, id);
  return id;
}

void merge_streams(Draft& draft, const Place& place, TensorId tensor) {
  int sum = -1;
  for (int from = 0; from < draft.sites(); ++from) {
    std::vector<int> parts;
    for (const Available& one : draft.have(from, tensor))
      if (draft.value(from, one.value).accumulator) parts.push_back(one.value);
    for (int part : parts) {
      if (from != place.site) {
        Value next = draft.value(from, part);
        next.accumulator = false;
        next.made = kEpilogue;
        next.storage = -1;
        int arrived = draft.add(place, std::move(next));
        draft.code.transfers.push_back({from, place.site, part, arrived, kEpilogue, kEpilogue});
        part = arrived;
      }
      sum = sum < 0 ? part : add_up(draft, place, sum, part);
    }
  }
  CHECK(sum >= 0);
  draft.offer(place.site, sum);
}

}  // namespace partita::lower
