#include "lower/sources.h"

#include <algorithm>

#include "base/error.h"
#include "layout/same_piece.h"
#include "lower/convert.h"
#include "program/words.h"

namespace partita::lower {
namespace {

int64_t collectives_in(const std::vector<Conversion>& steps) {
  return std::count_if(steps.begin(), steps.end(),
                       [](const Conversion& step) { return row_of(step.kind).collective; });
}

}  // namespace

bool usable(const Draft& draft, const Place& place, const Available& one) {
  const Facts& facts = draft.facts;
  const Segment& segment = place.segment;
  const Value& v = draft.value(place, one.value);
  if (v.piece >= 0 && (v.loop != place.loop || v.piece != place.piece)) return false;
  if (v.stream >= 0 && v.stream != segment.stream) return false;
  // Each of several streams sums up its own micro-batches.
  if (v.accumulator) return segment == kEpilogue && facts.sites.streams == 1;
  if (one.segment_only) return v.made == segment;
  if (facts.recomputed_in(place.site, segment, v.tensor))
    return v.made.backward() && v.made.stage == segment.stage && precedes(v.made, segment);
  bool gone = facts.many_microbatches() && segment == kEpilogue && !v.loaded && v.made.in_loop();
  return precedes(v.made, segment) && !gone;
}

// Pieces in time cannot be gathered: the others are not there yet, or not any more.
bool reachable(const Facts& facts, const Layout& from, const Layout& to) {
  for (size_t axis = facts.time(); axis < from.size(); ++axis)
    if (from[axis].kind == AxisLayout::kShard && !same_piece(from, to, axis)) return false;
  return true;
}

int nearest_source(const Draft& draft, const Place& place, TensorId tensor, const Layout& need,
                   std::optional<DType> as) {
  int best = -1;
  std::pair<int64_t, size_t> least;
  for (const Available& one : draft.have(place.site, tensor)) {
    const Value& v = draft.value(place, one.value);
    if (!usable(draft, place, one) || v.as != as || !reachable(draft.facts, v.layout, need)) continue;
    std::vector<Conversion> steps = plan_conversion(v.layout, need);
    if (std::pair cost(collectives_in(steps), steps.size()); best < 0 || cost < least) {
      best = one.value;
      least = cost;
    }
  }
  return best;
}

bool takes_others(const Value& value, const Layout& need) {
  return collectives_in(plan_conversion(value.layout, need)) > 0;
}

Segment leaves_after(const Draft& draft, const Place& reader, const Segment& made, TensorId tensor) {
  const std::vector<Available>& all = draft.have(reader.site, tensor);
  bool there = std::any_of(all.begin(), all.end(),
                           [&](const Available& one) { return usable(draft, reader.in(made), one); });
  if (all.empty() || there) return made;
  std::optional<Segment> first;
  for (const Available& one : all) {
    Segment since = draft.value(reader, one.value).made;
    if (usable(draft, reader, one) && since.in_loop() && (!first || since < *first)) first = since;
  }
  return first.value_or(made);
}

int before_epilogue(const Draft& draft, int site, TensorId tensor) {
  std::vector<Available> all = draft.have(site, tensor);
  for (int id : draft.summed_last[site])
    if (draft.value(site, id).tensor == tensor) all.push_back({id, false});
  int source = -1;
  for (const Available& one : all) {
    const Value& v = draft.value(site, one.value);
    if (usable(draft, {site, kEpilogue}, one) && v.made != kEpilogue && v.as == draft.facts.sum_dtype(tensor))
      source = one.value;
  }
  CHECK(source >= 0);
  return source;
}

}  // namespace partita::lower
