#include "program/fold.h"

#include <algorithm>

namespace partita::program {
namespace {

/// The leaf that moves along an axis; a layout cuts one leaf over an axis.
Span* moving_leaf(SpanBox& part, int axis) {
  for (auto& leaves : part)
    for (Span& leaf : leaves)
      if (leaf.steps[axis] != 0) return &leaf;
  return nullptr;
}

size_t folded_axes(const std::vector<Interval>& coordinates) {
  return std::min<size_t>(coordinates.size(), kFoldAxes);
}

SpanBox stand_at(SpanBox part, int axis, int64_t coordinate) {
  for (auto& leaves : part)
    for (Span& leaf : leaves) leaf = stand_at(leaf, axis, coordinate);
  return part;
}

Box box_of(const SpanBox& part) {
  Box box(part.size());
  for (size_t d = 0; d < part.size(); ++d)
    for (const Span& leaf : part[d]) box[d].push_back({leaf.begin, leaf.end});
  return box;
}

}  // namespace

int64_t Fold::ranks(int32_t rank_class) const {
  if (empty()) return 1;
  int64_t count = 1;
  for (const Interval& range : classes[rank_class].coordinates) count *= range.length();
  return count;
}

int64_t Fold::members(const Program& program, int32_t rank_class, int32_t group) const {
  const std::vector<int32_t>& listed = program.ranks[rank_class].groups[group];
  if (empty()) return static_cast<int64_t>(listed.size());
  int64_t count = 0;
  for (int32_t member : listed) {
    int64_t copies = 1;
    for (int axis : group_axes[rank_class][group]) copies *= classes[member].coordinates[axis].length();
    count += copies;
  }
  return count;
}

SpanBox standing(SpanBox part, const std::vector<Interval>& coordinates) {
  for (size_t axis = 0; axis < folded_axes(coordinates); ++axis)
    if (coordinates[axis].length() == 1)
      part = stand_at(std::move(part), static_cast<int>(axis), coordinates[axis].begin);
  return part;
}

std::vector<Box> boxes_of(const SpanBox& part) {
  std::vector<Box> boxes = {box_of(part)};
  for (size_t d = 0; d < part.size(); ++d)
    for (size_t l = 0; l < part[d].size(); ++l) {
      std::vector<Box> teeth;
      for (const Box& box : boxes)
        for (int64_t k = 0; k < part[d][l].count; ++k) {
          teeth.push_back(box);
          teeth.back()[d][l].begin += k * part[d][l].stride;
          teeth.back()[d][l].end += k * part[d][l].stride;
        }
      boxes = std::move(teeth);
    }
  return boxes;
}

// Fine cuts first: pieces of pieces join before the pieces do. What leaves gaps is listed one by one.
std::vector<Box> boxes_of(const SpanBox& part, const std::vector<Interval>& coordinates) {
  std::vector<int> axes;
  SpanBox first = part;
  for (size_t axis = 0; axis < folded_axes(coordinates); ++axis)
    if (moving_leaf(first, static_cast<int>(axis))) axes.push_back(static_cast<int>(axis));
  auto step = [&](int axis) { return moving_leaf(first, axis)->steps[axis]; };
  std::sort(axes.begin(), axes.end(), [&](int a, int b) { return step(a) < step(b); });
  std::vector<SpanBox> parts = {part};
  for (int axis : axes) {
    std::vector<SpanBox> next;
    for (SpanBox& one : parts) {
      SpanBox whole = one;
      Span* leaf = moving_leaf(whole, axis);
      bool gapless = leaf->steps[axis] == leaf->length();
      *leaf = union_along(*leaf, axis, coordinates[axis]);
      if (gapless && !moving_leaf(whole, axis)) {
        next.push_back(std::move(whole));
        continue;
      }
      for (int64_t x = coordinates[axis].begin; x < coordinates[axis].end; ++x)
        next.push_back(stand_at(one, axis, x));
    }
    parts = std::move(next);
  }
  std::vector<Box> boxes;
  for (const SpanBox& one : parts) boxes.push_back(box_of(one));
  return boxes;
}

Box hull_of(const SpanBox& part, const std::vector<Interval>& coordinates) {
  Box box = box_of(part);
  for (size_t d = 0; d < part.size(); ++d)
    for (size_t l = 0; l < part[d].size(); ++l)
      for (size_t axis = 0; axis < folded_axes(coordinates); ++axis) {
        int64_t step = part[d][l].steps[axis];
        const Interval& range = coordinates[axis];
        box[d][l].begin += std::min(step * range.begin, step * (range.end - 1));
        box[d][l].end += std::max(step * range.begin, step * (range.end - 1));
      }
  return box;
}

Offset offset_of(int64_t begin, const Steps& steps, const std::vector<Interval>& coordinates) {
  Offset out{begin, steps, begin, begin};
  for (size_t axis = 0; axis < folded_axes(coordinates); ++axis) {
    const Interval& range = coordinates[axis];
    int64_t first = steps[axis] * range.begin, last = steps[axis] * (range.end - 1);
    out.least += std::min(first, last);
    out.most += std::max(first, last);
    if (range.length() > 1) continue;
    out.begin += first;
    out.steps[axis] = 0;
  }
  return out;
}

}  // namespace partita::program
