#include "program/span.h"

#include <fmt/format.h>

namespace partita::program {
namespace {

int64_t hull_end(const Span& span) { return span.end + span.stride * (span.count - 1); }

bool combs_apart(const Span& a, const Span& b) {
  if (a.count == 1 || b.count == 1 || a.stride != b.stride) return false;
  int64_t distance = ((b.begin - a.begin) % a.stride + a.stride) % a.stride;
  return distance >= a.length() && distance + b.length() <= a.stride;
}

/// A comb without gaps is one interval.
void close_gaps(Span& span) {
  if (span.count > 1 && span.length() == span.stride)
    span = {span.begin, span.begin + span.stride * span.count, span.steps};
}

/// More teeth of the same comb.
bool lengthen(Span& into, const Span& other) {
  int64_t stride = std::max(into.stride, other.stride);
  bool alike = (into.count == 1 || into.stride == stride) && (other.count == 1 || other.stride == stride);
  if (!alike || stride == 0 || into.length() != other.length()) return false;
  const Span &first = into.begin < other.begin ? into : other,
             &last = into.begin < other.begin ? other : into;
  if (last.begin != first.begin + stride * first.count) return false;
  into = {first.begin, first.end, into.steps, stride, into.count + other.count};
  return true;
}

}  // namespace

SpanBox as_spans(const Box& box) {
  SpanBox part(box.size());
  for (size_t d = 0; d < box.size(); ++d)
    for (const Interval& leaf : box[d]) part[d].push_back(span_of(leaf));
  return part;
}

bool meet(const Span& a, const Span& b, Span& out) {
  if (has_length(a) && has_length(b) && a.length() != b.length()) return false;
  if (!is_anywhere(a) && !is_anywhere(b) && a != b) return false;
  out = is_anywhere(a) && (!is_anywhere(b) || has_length(b)) ? b : a;
  return true;
}

bool meet(const SpanBox& a, const SpanBox& b, SpanBox& out) {
  if (a.size() != b.size()) return false;
  SpanBox met = a;
  for (size_t d = 0; d < a.size(); ++d) {
    if (a[d].size() != b[d].size()) return false;
    for (size_t l = 0; l < a[d].size(); ++l)
      if (!meet(a[d][l], b[d][l], met[d][l])) return false;
  }
  out = std::move(met);
  return true;
}

// Spans that move differently could meet somewhere; that they do not is never needed.
bool apart(const Span& a, const Span& b) {
  if (is_anywhere(a) || is_anywhere(b) || a.steps != b.steps) return false;
  return hull_end(a) <= b.begin || hull_end(b) <= a.begin || combs_apart(a, b);
}

bool merge(Span& into, const Span& other) {
  if (into.steps != other.steps) return false;
  bool alike = into.count == other.count && into.stride == other.stride;
  if (alike && into.end == other.begin)
    into.end = other.end;
  else if (alike && other.end == into.begin)
    into.begin = other.begin;
  else if (!lengthen(into, other))
    return false;
  close_gaps(into);
  return true;
}

Span stand_at(Span span, int axis, int64_t coordinate) {
  span.begin += span.steps[axis] * coordinate;
  span.end += span.steps[axis] * coordinate;
  span.steps[axis] = 0;
  return span;
}

// Pieces that touch make one longer interval, also as teeth of a comb; a comb goes on where it ends; one
// interval with gaps begins a comb.
bool overlaps_along(const Span& span, int axis, const Interval& coordinates) {
  int64_t step = span.steps[axis], wider = span.length() * coordinates.length();
  if (is_anywhere(span)) return true;
  if (span.count == 1) return step < span.length();
  return step != span.stride * span.count && (step != span.length() || wider > span.stride);
}

Span union_along(Span span, int axis, const Interval& coordinates) {
  int64_t step = span.steps[axis];
  span = stand_at(span, axis, coordinates.begin);
  if (coordinates.length() == 1) return span;
  if (step == span.length()) {
    span.end = span.begin + step * coordinates.length();
  } else {
    if (span.count == 1) span.stride = step;
    span.count *= coordinates.length();
  }
  close_gaps(span);
  return span;
}

int64_t numel(const SpanBox& part) {
  int64_t count = 1;
  for (const auto& leaves : part)
    for (const Span& leaf : leaves) count *= leaf.length() * leaf.count;
  return count;
}

std::string show_span(const Span& span) {
  if (is_anywhere(span)) return has_length(span) ? fmt::format("any {}", span.length()) : "any";
  std::string text = fmt::format("{}:{}", span.begin, span.end);
  for (size_t axis = 0; axis < span.steps.size(); ++axis)
    if (span.steps[axis]) text += fmt::format(" + {}{}", span.steps[axis], "xyzwm"[axis]);
  return span.count > 1 ? fmt::format("{} ({} times, every {})", text, span.count, span.stride) : text;
}

std::string show_spans(const SpanBox& part) {
  std::string text = "[";
  for (size_t d = 0; d < part.size(); ++d) {
    if (d) text += ", ";
    if (part[d].empty()) text += "1";
    for (size_t l = 0; l < part[d].size(); ++l)
      text += fmt::format("{}{}", l ? "*" : "", show_span(part[d][l]));
  }
  return text + "]";
}

}  // namespace partita::program
