#pragma once

#include <string>

#include "layout/box.h"
#include "program/program.h"

namespace partita::program {

/// An interval of a loop as a rank holds it, or a class of ranks (fold.h): it moves by `steps[a]` with every
/// coordinate on mesh axis a, and by `steps[kTime]` with every micro-batch, all counted from 0. `count` > 1:
/// a comb, the interval and others at distance `stride`, what ranks whose pieces do not touch hold together.
/// Example: over 4 ranks of axis 0, micro-batch 1 of 2 of 16 rows is [2, 4) with steps[0] = 4; their sum
/// holds the comb [2, 4), stride 4, count 4; with that of micro-batch 0 it is [0, 16).
struct Span {
  int64_t begin = 0, end = 0;
  Steps steps = {};
  int64_t stride = 0, count = 1;
  int64_t length() const { return end - begin; }
  auto operator<=>(const Span&) const = default;
};
inline Span span_of(const Interval& interval) { return {interval.begin, interval.end}; }

/// A box of spans.
using SpanBox = std::vector<std::vector<Span>>;
SpanBox as_spans(const Box& box);

/// Spans of which only the length is known, or not even that. A value that is the same all along a
/// dimension (what `full` and `expand` make) is right at every place of it: its span lies anywhere.
/// Example: expand [4, 1] -> [4, 8] on a rank that made [4, 3]: the new dimension is anywhere(3) of 8.
inline constexpr int64_t kAnywhere = INT64_MIN / 2;
inline constexpr int64_t kUnknownLength = -1;

inline Span anywhere(int64_t length) { return {kAnywhere, kAnywhere + length}; }
inline bool is_anywhere(const Span& span) { return span.begin == kAnywhere; }
inline bool has_length(const Span& span) { return span.length() != kUnknownLength; }
inline bool is_whole(const Span& span, int64_t size) { return span.length() == size; }

/// `anywhere(size)` of a dimension of this size is all of it.
inline Span settled(const Span& span, int64_t size) {
  return is_anywhere(span) && span.length() == size ? Span{0, size} : span;
}

/// The span both stand for, in `out`; false where they differ. Example: anywhere(2) and [4, 6) meet in
/// [4, 6).
bool meet(const Span& a, const Span& b, Span& out);
/// Leaf by leaf.
bool meet(const SpanBox& a, const SpanBox& b, SpanBox& out);

/// Do the two have nothing in common, wherever a rank stands? False where that is not known.
bool apart(const Span& a, const Span& b);
/// Adds `other`, which is apart, to `into` where the two are one span; false where they are not.
bool merge(Span& into, const Span& other);

/// What stands still along an axis, at this coordinate of it.
Span stand_at(Span span, int axis, int64_t coordinate);
/// What the ranks with these coordinates on `axis` hold together. REQUIRES: it moves along the axis and its
/// pieces do not overlap, as far as `overlaps_along` can tell.
Span union_along(Span span, int axis, const Interval& coordinates);
bool overlaps_along(const Span& span, int axis, const Interval& coordinates);

int64_t numel(const SpanBox& part);

/// "2:4", "any 3", "any"; of a class "2:4 + 4x" with x the first coordinate.
std::string show_span(const Span& span);
std::string show_spans(const SpanBox& part);

}  // namespace partita::program
