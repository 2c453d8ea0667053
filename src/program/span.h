#pragma once

#include <string>

#include "layout/box.h"

namespace partita {

/// Intervals of which only the length is known, or not even that. A value that is the same all along a
/// dimension (what `full` and `expand` make) is right at every place of it: its interval lies anywhere.
/// Example: expand [4, 1] -> [4, 8] on a rank that made [4, 3]: the new dimension is anywhere(3) of 8.
inline constexpr int64_t kAnywhere = INT64_MIN / 2;
inline constexpr int64_t kUnknownLength = -1;

inline Interval anywhere(int64_t length) { return {kAnywhere, kAnywhere + length}; }
inline bool is_anywhere(const Interval& span) { return span.begin == kAnywhere; }
inline bool has_length(const Interval& span) { return span.length() != kUnknownLength; }
inline bool is_whole(const Interval& span, int64_t size) { return span.length() == size; }

/// `anywhere(size)` of a dimension of this size is all of it.
inline Interval settled(const Interval& span, int64_t size) {
  return is_anywhere(span) && span.length() == size ? Interval{0, size} : span;
}

/// The interval both stand for, in `out`; false where they differ. Example: anywhere(2) and [4, 6) meet in
/// [4, 6).
bool meet(const Interval& a, const Interval& b, Interval& out);
/// Leaf by leaf.
bool meet(const Box& a, const Box& b, Box& out);

/// "2:4", "any 3", "any".
std::string show_span(const Interval& span);
std::string show_spans(const Box& box);

}  // namespace partita
